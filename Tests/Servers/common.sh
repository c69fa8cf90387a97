# Shared by the scripts that start servers for tests. Each prints the port of its server on the loopback interface, and ends it with the
# process that has called it: so no server outlives the tests, however these end.

scratch="$(mktemp -d "${TMPDIR:-/tmp}/buckia-server.XXXXXX")"
server=

cleanup() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
  rm -rf "$scratch"
}
trap cleanup EXIT

need() {
  command -v "$1" >/dev/null 2>&1 || { echo "$1 is missing; install Debian's package $2" >&2; exit 1; }
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Waits until the process that wants the server has ended.
while_wanted() {
  while kill -0 "$PPID" 2>/dev/null; do sleep 0.5; done
}

# Waits until something listens at a port, prints the port, and then waits until the server is no longer wanted.
serve() {
  for _ in $(seq 300); do
    if python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1).close()" 2>/dev/null; then
      echo "$1"
      while_wanted
      exit 0
    fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  echo 'the server did not start:' >&2
  cat "$scratch/log" >&2
  exit 1
}

# A Python environment with some packages, made once for a checkout.
python_with() {
  need python3 python3
  local name="$1"; shift
  local root; root="$(cd "$(dirname "$0")/../.." && pwd)/.build/servers/$name"
  if [ ! -e "$root/ready" ]; then
    rm -rf "$root"
    python3 -m venv "$root" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; echo "install Debian's package python3-venv" >&2; exit 1; }
    "$root/bin/pip" install -q --disable-pip-version-check "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
    touch "$root/ready"
  fi
  echo "$root/bin/python"
}

# What the servers of PyPI run in.
s3_python() { python_with s3 'moto[server]==5.2.1'; }
wsgidav_python() { python_with wsgidav 'WsgiDAV==4.3.3' 'cheroot==10.0.1'; }
# A Python with another version of SQLite than the system's, which tests of the loadable extension use as a host.
apsw_python() { python_with apsw 'apsw==3.54.1.0'; }
# axe-core, which tests of pages run in a browser; what else the package could do would need another browser.
axe_python() { python_with axe --no-deps 'axe-playwright-python==0.1.8'; }
oidc_python() { python_with oidc 'Authlib==1.9.10' 'Flask==3.1.3' 'oidc-provider-mock==0.3.4'; }

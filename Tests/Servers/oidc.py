"""Two OpenID Connect servers for tests, on free ports of this computer.

The first is Authlib's with the code flow (PKCE demanded), the device flow, refresh tokens that are good once, and revocation.
The second is oidc-provider-mock. Their ports are printed on a line each; the process ends when its standard input does.

What a person would do in a browser, tests do with POST /test/… of the first server.
"""
import logging
import os
import secrets
import sys
import threading
import time

# What is sent here never leaves this computer.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import OAuth2Error, grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant
from authlib.oidc.core import OpenIDCode, OpenIDToken, UserInfo
from flask import Flask, jsonify, request
from joserfc.jwk import KeySet, RSAKey
import oidc_provider_mock
from werkzeug.serving import make_server

logging.disable(logging.CRITICAL)
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class Client:
    """An app: "public" has no secret, "secret" has one."""

    def __init__(self, client_id):
        self.client_id = client_id

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return None

    def get_allowed_scope(self, scope):
        return scope

    def check_redirect_uri(self, uri):
        return uri.startswith("http://127.0.0.1:")

    def check_client_secret(self, secret):
        return self.client_id == "secret" and secret == "s3cr&t+%"

    def check_endpoint_auth_method(self, method, endpoint):
        return method == ("client_secret_basic" if self.client_id == "secret" else "none")

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type in ("authorization_code", "refresh_token", DEVICE_GRANT)


class Token(dict):
    def check_client(self, client):
        return self["client_id"] == client.client_id

    def get_scope(self):
        return self.get("scope", "")

    def get_expires_in(self):
        return self["expires_in"]

    def is_expired(self):
        return self["issued"] + self["expires_in"] < time.time()

    def is_revoked(self):
        return self["revoked"]

    def get_user(self):
        return self["user"]

    def get_client(self):
        return Client(self["client_id"])


class Code:
    def __init__(self, code, request):
        payload = request.payload
        self.code = code
        self.client_id = request.client.client_id
        self.redirect_uri = payload.redirect_uri
        self.scope = payload.scope
        self.user = request.user
        self.nonce = payload.data.get("nonce")
        self.code_challenge = payload.data.get("code_challenge")
        self.code_challenge_method = payload.data.get("code_challenge_method")

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope

    def get_nonce(self):
        return self.nonce

    def get_auth_time(self):
        return int(time.time())

    def get_acr(self):
        return None

    def get_amr(self):
        return None


class DeviceCredential(dict):
    def get_client_id(self):
        return self["client_id"]

    def get_scope(self):
        return self["scope"]

    def get_user_code(self):
        return self["user_code"]

    def is_expired(self):
        return self.get("ended", False)

    def get_nonce(self):
        return None

    def get_auth_time(self):
        return int(time.time())


def authlib_app():
    app = Flask(__name__)
    app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
    tokens, codes, devices, grants_of_users = [], {}, {}, {}
    keys = [RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})]

    def issuer():
        return request.host_url.rstrip("/")

    def save_token(token, request):
        tokens.append(
            Token(token, client_id=request.client.client_id, user=request.user, issued=time.time(), revoked=False))

    server = AuthorizationServer(
        app,
        query_client=lambda name: Client(name) if name in ("public", "secret") else None,
        save_token=save_token)

    class Signing:
        """Signs ID tokens, for the code flow and for the device flow."""

        def resolve_client_private_key(self, client):
            return keys[-1]

        def get_client_algorithm(self, client):
            return "RS256"

        def get_client_claims(self, client):
            return {"iss": issuer(), "aud": [client.client_id]}

        def get_encode_header(self, client):
            return {"alg": "RS256", "kid": keys[-1].kid}

        def generate_user_info(self, user, scope):
            return UserInfo(sub=user, name="Anna", email="anna@example.com")

    class CodeIdentity(Signing, OpenIDCode):
        def exists_nonce(self, nonce, request):
            return False

    class DeviceIdentity(Signing, OpenIDToken):
        pass

    class CodeGrant(grants.AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "none"]

        def save_authorization_code(self, code, request):
            codes[code] = Code(code, request)

        def query_authorization_code(self, code, client):
            found = codes.get(code)
            return found if found and found.client_id == client.client_id else None

        def delete_authorization_code(self, authorization_code):
            codes.pop(authorization_code.code)

        def authenticate_user(self, authorization_code):
            return authorization_code.user

    class Refresh(grants.RefreshTokenGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "none"]
        INCLUDE_NEW_REFRESH_TOKEN = True

        def authenticate_refresh_token(self, refresh_token):
            for token in tokens:
                if token.get("refresh_token") == refresh_token and not token["revoked"]:
                    return token

        def authenticate_user(self, refresh_token):
            return refresh_token["user"]

        def revoke_old_credential(self, refresh_token):
            refresh_token["revoked"] = True

    class Device(DeviceCodeGrant):
        def query_device_credential(self, device_code):
            return devices.get(device_code)

        def query_user_grant(self, user_code):
            return grants_of_users.get(user_code)

        def should_slow_down(self, credential):
            return credential.pop("slow", False)

    class DeviceEndpoint(DeviceAuthorizationEndpoint):
        INTERVAL = 3

        def get_verification_uri(self):
            return issuer() + "/device"

        def save_device_credential(self, client_id, scope, data):
            devices[data["device_code"]] = DeviceCredential(client_id=client_id, scope=scope, **data)

    class Revocation(RevocationEndpoint):
        CLIENT_AUTH_METHODS = ["client_secret_basic", "none"]

        def query_token(self, text, hint):
            for token in tokens:
                if text in (token["access_token"], token.get("refresh_token")):
                    return token

        def revoke_token(self, token, request):
            token["revoked"] = True

    server.register_grant(CodeGrant, [CodeIdentity(require_nonce=True), CodeChallenge(required=True)])
    server.register_grant(Refresh)
    server.register_grant(Device, [DeviceIdentity()])
    server.register_endpoint(DeviceEndpoint)
    server.register_endpoint(Revocation)

    @app.get("/.well-known/openid-configuration")
    def configuration():
        base = issuer()
        return jsonify(
            issuer=base, authorization_endpoint=base + "/authorize", token_endpoint=base + "/token",
            jwks_uri=base + "/keys", device_authorization_endpoint=base + "/device-code",
            revocation_endpoint=base + "/revoke", response_types_supported=["code"],
            subject_types_supported=["public"], id_token_signing_alg_values_supported=["RS256"],
            token_endpoint_auth_methods_supported=["client_secret_basic", "none"],
            code_challenge_methods_supported=["S256"])

    @app.get("/keys")
    def published_keys():
        return jsonify(KeySet(keys).as_dict(private=False))

    @app.route("/authorize", methods=["GET", "POST"])
    def authorize():
        # A person who is signed in already and agrees, or who refuses.
        try:
            grant = server.get_consent_grant(end_user="anna")
        except OAuth2Error as error:
            return jsonify(dict(error.get_body())), 400
        user = None if request.args.get("answer") == "refuse" else "anna"
        return server.create_authorization_response(grant_user=user, grant=grant)

    @app.post("/token")
    def token():
        return server.create_token_response()

    @app.post("/device-code")
    def device_code():
        return server.create_endpoint_response(DeviceEndpoint.ENDPOINT_NAME)

    @app.post("/revoke")
    def revoke():
        return server.create_endpoint_response(Revocation.ENDPOINT_NAME)

    @app.get("/whoami")
    def whoami():
        text = request.headers.get("Authorization", "").removeprefix("Bearer ")
        for token in tokens:
            if token["access_token"] == text and not token["revoked"]:
                return jsonify(user=token["user"])
        return jsonify(error="invalid_token"), 401

    @app.post("/test/device/<user_code>/<answer>")
    def answer_device(user_code, answer):
        if answer in ("ended", "slow"):
            for credential in devices.values():
                if credential["user_code"] == user_code:
                    credential[answer] = True
        else:
            grants_of_users[user_code] = ("anna", answer == "agree")
        return "", 204

    @app.post("/test/new-key")
    def new_key():
        # The old ones stay: others may be signing in.
        keys.append(RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig", "alg": "RS256"}))
        return "", 204

    return app


def serve(app):
    server = make_server("127.0.0.1", 0, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


print(serve(authlib_app()), serve(oidc_provider_mock.app()), sep="\n", flush=True)
sys.stdin.read()
os._exit(0)

/// How a token is signed (RFC 7518, section 3.1; RFC 8037). `none` is not one of them.
enum SignatureAlgorithm: String, Sendable, CaseIterable {
  case hs256 = "HS256"
  case es256 = "ES256"
  case es384 = "ES384"
  case es512 = "ES512"
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case ps256 = "PS256"
  case ps384 = "PS384"
  case ps512 = "PS512"
  case edDSA = "EdDSA"
}

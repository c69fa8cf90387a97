import BuckiaBytes
import BuckiaSync
import JWTKit

@testable import BuckiaSync

/// Keys made for these tests, and used nowhere else.
enum TestKeys {
  static let seed = (0..<32).map { UInt8($0) }
  static let secret = (0..<32).map { UInt8(200 - $0) }

  static let ecdsaPrivate = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyb9N9NJytuBH6+PD
    cCrArZxyzTGxEP+rddyTFfbhvpOhRANCAAQ67ikF8FaOUuELqXodqMMhoG+jPy02
    Zk9P5Arz/oetJgkoiiMRp1gmmHGrBoIQPkbQu7tS68p8Ga9W4V9w4NQP
    -----END PRIVATE KEY-----
    """
  static let ecdsaPublic = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEOu4pBfBWjlLhC6l6HajDIaBvoz8t
    NmZPT+QK8/6HrSYJKIojEadYJphxqwaCED5G0Lu7UuvKfBmvVuFfcODUDw==
    -----END PUBLIC KEY-----
    """
  static let rsaPrivate = """
    -----BEGIN PRIVATE KEY-----
    MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCzpzeAsAqtsVxF
    H6QSdHtEkEXD8iI6lwUdaPg3L0VfxpFkrzxLVdi5B0qW3JRpiVFj1in718iiBuvl
    Dws0AQQD2gBrdZINzAdQAHGFM/n0a3v4nlWuwGeHhlmHEuL8b26KsPeychcubaHe
    y1ie6MSQ9Obs3H2CQkwEm7ZYiHnkgN9f9wnhhpIEJOcsPZs3a0KIG86tVNAFJTRO
    KNKu1Av59t4Uvf8h2bnjklXK8Yb9f8kuPuuZ4RhRpI069tAfYWgawKtz9HGVItBK
    cIXtgH1kWkjMHdtcPWGF9GUFNF2nW99H/agvndu5F/N/ja/8W3GU52rsxnOYoHrt
    2k5W3WiVAgMBAAECggEABk1YYhhK15sALKCWhds2M8qH1/7Xeoyvrj9vbagn29tA
    YHLRP6dMSflagX5NaoJZq5HouR/xttVdUxS7BOEAPg5Ys2xVakx8+S56zPxsyUk3
    +Rm80buIJjXtUBK2ibpy+0SH++eKrqND6WfivPhXZOpia260rGwc9JBtzh9Df2OC
    1YwMQqerIYa2yvhywAC3P0liQH9A5gCYNA5iDxtCM4BfglYZ/Ci9D+g5reOYCgS+
    VzlA0aY/3vP5+vC0dxl55zQf/7UvgaPCbpt56SZvm54o2OC422H4mTR8/50XuVFs
    7G9Y0jVlVv5U0TCaCYP6Ry1tlmorQ9d3ReiJsDoEIQKBgQDrqAvtgEb5z0xC13ir
    qxEytolDuEPorvFwy922NU+f7Tm16zyTPsbQWfTmsuBEM9vTAXIIznkBYLweCM+k
    A1oIXWXs2wXPoXL8H8+cyCon2aP21Rd42oboU7ngvNwDgw2FnfdW2KOZ0FOM289p
    RUfaEI8BrO5BzVWgk2OqjZrr7QKBgQDDKYLn9z+eTySMiWmL1ll6KQaDLQUq5jzf
    KdBjPZL5mxhahqPLLQr7SDgJo4/ggZ6ToaeT97emHj7Z/hMx6+5RvrAEqCq9QLad
    AYyyvGeCaTiNFs717RN0f/FyV+yi67jjT8x/RD8DLJ4d3kSnWzV3UZnpqBkJmDYg
    6MsXEABqSQKBgGUR8euu9MH3krGoUGzwNbQWbdDJmvaU8aB7D2AyhTAGQpYvig9t
    AUAjFNJNLbqSs1lQaWQ1idh5cLVA+i1R8q9bv3dSiK+Agxx3WEfZ4Zqt0ZDv291N
    fEbwgexNk989ufLwyUBKMgCqROtI6zAvMp3oNC13ycgXFP6FuF1R1nwRAoGAQZ7v
    mTeVeJF75JU/m/lS1LR+sBSvLCGGTjMtEnFdvffcVHP5FxPqIVvDG9qXQhHTVCiC
    xEoCwiRhVcMMiTifRXUskiRJWqErxdcDjAW1eDARB7+njyFL7Vwnvx65Pn6sCCKI
    zDISTerur3RQ+US90YTqj5op8QPxD1e3EeYbfaECgYBg+e6Anj/Y5tZt0UTmoU5/
    hJ6edopeaSjYl/AiuQ9IzeJxj8eEaai1vybiNufdbqncFOWrHvExNH355G5GFHmF
    5P2K4O/5YOqEzGCt2HqwkO07Xoh6D95sYA5apOAxLTBZnIvZrwQyV1EnomRj+1o1
    lcNU+4HiksAmeejzuz/3iQ==
    -----END PRIVATE KEY-----
    """
  static let rsaPublic = """
    -----BEGIN PUBLIC KEY-----
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAs6c3gLAKrbFcRR+kEnR7
    RJBFw/IiOpcFHWj4Ny9FX8aRZK88S1XYuQdKltyUaYlRY9Yp+9fIogbr5Q8LNAEE
    A9oAa3WSDcwHUABxhTP59Gt7+J5VrsBnh4ZZhxLi/G9uirD3snIXLm2h3stYnujE
    kPTm7Nx9gkJMBJu2WIh55IDfX/cJ4YaSBCTnLD2bN2tCiBvOrVTQBSU0TijSrtQL
    +fbeFL3/Idm545JVyvGG/X/JLj7rmeEYUaSNOvbQH2FoGsCrc/RxlSLQSnCF7YB9
    ZFpIzB3bXD1hhfRlBTRdp1vfR/2oL53buRfzf42v/FtxlOdq7MZzmKB67dpOVt1o
    lQIDAQAB
    -----END PUBLIC KEY-----
    """

  /// The public keys as a server publishes them.
  static func webKeys(rsaID: String = "rsa", ecdsaID: String = "ec") throws -> JSONValue {
    let rsa = try Insecure.RSA.PublicKey(pem: rsaPublic).getKeyPrimitives()
    let ecdsa = try ES256PublicKey(pem: ecdsaPublic).parameters
    return [
      "keys": [
        [
          "kty": "RSA", "use": "sig", "kid": .string(rsaID), "n": .string(Base64URL.text([UInt8](rsa.modulus))),
          "e": .string(Base64URL.text([UInt8](rsa.publicExponent))),
        ],
        [
          "kty": "EC", "crv": "P-256", "kid": .string(ecdsaID), "x": .string(urlText(ecdsa?.x)),
          "y": .string(urlText(ecdsa?.y)),
        ],
        ["kty": "RSA", "use": "enc", "kid": "other", "n": "AQAB", "e": "AQAB"],
      ]
    ]
  }

  private static func urlText(_ text: String?) -> String {
    Base64URL.text(Base64URL.bytes(text ?? "") ?? [])
  }

  /// A token with the signature that a function makes.
  static func token(
    _ header: JSONValue, _ claims: JSONValue, signedBy sign: (String) throws -> [UInt8]
  ) rethrows -> String {
    let signed = "\(Base64URL.text(header.bytes())).\(Base64URL.text(claims.bytes()))"
    return "\(signed).\(Base64URL.text(try sign(signed)))"
  }

  /// Signs with the RSA key, as a server does.
  static func rsaSigned(_ claims: JSONValue, keyID: String? = "rsa") async throws -> String {
    let keys = await JWTKeyCollection().add(rsa: try Insecure.RSA.PrivateKey(pem: rsaPrivate), digestAlgorithm: .sha256)
    let signer = try await keys.getKey()
    var header = JSONObject([.init("alg", "RS256")])
    if let keyID { header.append("kid", .string(keyID)) }
    return try token(.object(header), claims) { try signer.sign(Array($0.utf8)) }
  }
}

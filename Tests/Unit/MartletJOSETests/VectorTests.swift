import MartletCore
import MartletCrypto
import MartletJOSE
import Testing

/// The examples of the RFCs, so that an error common to our signer and verifier is noticed.
@Suite struct VectorTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let algorithm: SignatureAlgorithm
        let parts: PublicKeyParts
        let input: String
        let signature: String

        var key: VerificationKey {
            get throws { try VerificationKey(id: #require(KeyID("vector")), parts: parts, allowing: [algorithm]) }
        }
    }

    private static func bytes(_ text: String) -> [UInt8] { Base64URL.decode(text) ?? [] }

    static let claims =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    /// The RSA key of RFC 7520 §3.4.
    static let bilbo = PublicKeyParts.rsa(
        modulus: bytes(
            "n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCp"
                + "MaJMRBSFKrKb2wqVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd"
                + "1E6cS6M1FZcD1NNLYD5lFHpPI9bTwJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKn"
                + "S2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkRz5iaiQkqgc5gHdrNP5zw"),
        exponent: [1, 0, 1])

    /// The payload of RFC 7520 §4.
    static let warning =
        "SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm"
        + "9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJl"
        + "IHN3ZXB0IG9mZiB0by4"

    static let vectors = [
        Vector(
            testDescription: "RFC 7515 A.2", algorithm: .rs256,
            parts: .rsa(
                modulus: bytes(
                    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZ"
                        + "S-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2"
                        + "R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcD"
                        + "TW9gb54h4FRWyuXpoQ"),
                exponent: [1, 0, 1]),
            input: "eyJhbGciOiJSUzI1NiJ9.\(claims)",
            signature:
                "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t"
                + "1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12j"
                + "zDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ"
                + "Ge77Rw"),
        Vector(
            testDescription: "RFC 7515 A.3", algorithm: .es256,
            parts: .p256(
                x: bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
                y: bytes("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")),
            input: "eyJhbGciOiJFUzI1NiJ9.\(claims)",
            signature: "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"),
        Vector(
            testDescription: "RFC 7520 4.1", algorithm: .rs256,
            parts: bilbo,
            input: "eyJhbGciOiJSUzI1NiIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9.\(warning)",
            signature:
                "MRjdkly7_-oTPTS3AXP41iQIGKa80A0ZmTuV5MEaHoxnW2e5CZ5NlKtainoFmKZopdHM1O2U4mwzJdQx996ivp83xuglII7PNDi84wnB-BDkoBwA"
                + "78185hX-Es4JIwmDLJK3lfWRa-XtL0RnltuYv746iYTh_qHRD68BNt1uSNCrUCTJDt5aAE6x8wW1Kt9eRo4QPocSadnHXFxnt8Is9UzpERV0ePPQ"
                + "dLuW3IS_de3xyIrDaLGdjluPxUAhb6L2aXic1U12podGU0KLUQSE_oI-ZnmKJ3F4uOZDnd6QZWJushZ41Axf_fcIe8u9ipH84ogoree7vjbU5y18"
                + "kDquDg"),
        Vector(
            testDescription: "RFC 7520 4.2", algorithm: .ps384,
            parts: bilbo,
            input: "eyJhbGciOiJQUzM4NCIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9.\(warning)",
            signature:
                "cu22eBqkYDKgIlTpzDXGvaFfz6WGoz7fUDcfT0kkOy42miAh2qyBzk1xEsnk2IpN6-tPid6VrklHkqsGqDqHCdP6O8TTB5"
                + "dDDItllVo6_1OLPpcbUrhiUSMxbbXUvdvWXzg-UD8biiReQFlfz28zGWVsdiNAUf8ZnyPEgVFn442ZdNqiVJRmBqrYRXe8"
                + "P_ijQ7p8Vdz0TTrxUeT3lm8d9shnr2lfJT8ImUjvAA2Xez2Mlp8cBE5awDzT0qI0n6uiP1aCN_2_jLAeQTlqRHtfa64QQS"
                + "UmFAAjVKPbByi7xho0uTOcbH510a6GYmJUAfmWjwZ6oD4ifKo8DYM-X72Eaw"),
        Vector(
            testDescription: "RFC 7520 4.3", algorithm: .es512,
            parts: .p521(
                x: bytes("AHKZLLOsCOzz5cY97ewNUajB957y-C-U88c3v13nmGZx6sYl_oJXu9A5RkTKqjqvjyekWF-7ytDyRXYgCF5cj0Kt"),
                y: bytes("AdymlHvOiLxXkEhayXQnNCvDX4h9htZaCJN34kfmC6pV5OhQHiraVySsUdaQkAgDPrwQrJmbnX9cwlGfP-HqHZR1")),
            input: "eyJhbGciOiJFUzUxMiIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9.\(warning)",
            signature:
                "AE_R_YZCChjn4791jSQCrdPZCNYqHXCTZH0-JZGYNlaAjP2kqaluUIIUnC9qvbu9Plon7KRTzoNEuT4Va2cmL1eJAQy3mt"
                + "PBu_u_sDDyYjnAMDxXPn7XrT0lw-kvAD890jl8e2puQens_IEKBpHABlsbEPX6sFY8OcGDqoRuBomu9xQ2"),
        Vector(
            testDescription: "RFC 7515 A.4", algorithm: .es512,
            parts: .p521(
                x: bytes("AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk"),
                y: bytes("ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2")),
            input: "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA",
            signature:
                "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8GaS"
                + "wFKdCAPZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn"),
        Vector(
            testDescription: "RFC 8037 A.5", algorithm: .edDSA,
            parts: .ed25519(x: bytes("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")),
            input: "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
            signature:
                "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"),
    ]

    @Test(arguments: vectors)
    func `verifies what the RFC signed and not one bit else`(vector: Vector) throws {
        let key = try vector.key
        let (input, signature) = (Array(vector.input.utf8), Self.bytes(vector.signature))
        #expect(key.verify(signature: signature, signingInput: input, as: vector.algorithm))
        for index in signature.indices {
            var changed = signature
            changed[index] ^= 0x10
            #expect(!key.verify(signature: changed, signingInput: input, as: vector.algorithm))
        }
        #expect(!key.verify(signature: signature, signingInput: input + [0x2E], as: vector.algorithm))
    }

    /// RFC 7515 A.1 and RFC 7520 §4.4: the secret, the signed bytes and the code.
    static let secrets = [
        (
            "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow",
            "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\(claims)", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        ),
        (
            "hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG-Onbc6mxCcYg",
            "eyJhbGciOiJIUzI1NiIsImtpZCI6IjAxOGMwYWU1LTRkOWItNDcxYi1iZmQ2LWVlZjMxNGJjNzAzNyJ9.\(warning)",
            "s0h6KThzkfBBBkLspW1h84VsJZFTsPPqMDA7g1Md7p0"
        ),
    ]

    @Test(arguments: secrets)
    func `verifies the HMACs of the RFCs`(secret: String, input: String, code: String) throws {
        let key = try HMACKey(Secret(Self.bytes(secret)), algorithm: .hs256)
        #expect(key.verify(signature: Self.bytes(code), signingInput: Array(input.utf8)))
        #expect(!key.verify(signature: Self.bytes(code), signingInput: Array(input.utf8) + [0]))
    }

    @Test func `rejects the unsecured example of RFC 7515 A5`() {
        #expect(throws: JOSEError(.malformed, "")) {
            try CompactJWS(Array("eyJhbGciOiJub25lIn0.\(Self.claims).".utf8))
        }
        let jws = try? CompactJWS(Array("eyJhbGciOiJub25lIn0.\(Self.claims).AAAA".utf8))
        #expect(throws: JOSEError(.algorithmNotAllowed, "")) {
            try jws?.algorithm(among: Set(SignatureAlgorithm.allCases))
        }
    }
}

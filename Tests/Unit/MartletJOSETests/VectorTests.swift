import MartletCore
import MartletCrypto
import MartletJOSE
import Testing

/// The examples of the RFCs, so that an error common to our signer and verifier is noticed.
@Suite struct VectorTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let parts: PublicKeyParts
        let input: String
        let signature: String

        var key: VerificationKey {
            get throws { try VerificationKey(id: #require(KeyID("vector")), parts: parts) }
        }
    }

    private static func bytes(_ text: String) -> [UInt8] { Base64URL.decode(text) ?? [] }

    static let claims =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

    static let vectors = [
        Vector(
            testDescription: "RFC 7515 A.2",
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
            testDescription: "RFC 7515 A.3",
            parts: .p256(
                x: bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
                y: bytes("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")),
            input: "eyJhbGciOiJFUzI1NiJ9.\(claims)",
            signature: "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"),
        Vector(
            testDescription: "RFC 7520 4.1",
            parts: .rsa(
                modulus: bytes(
                    "n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCpMaJMRBSFKrKb2w"
                        + "qVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lFHpPI9bT"
                        + "wJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkRz5"
                        + "iaiQkqgc5gHdrNP5zw"),
                exponent: [1, 0, 1]),
            input: "eyJhbGciOiJSUzI1NiIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9."
                + "SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm9hZCwgYW5k"
                + "IGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4",
            signature:
                "MRjdkly7_-oTPTS3AXP41iQIGKa80A0ZmTuV5MEaHoxnW2e5CZ5NlKtainoFmKZopdHM1O2U4mwzJdQx996ivp83xuglII7PNDi84wnB-BDkoBwA"
                + "78185hX-Es4JIwmDLJK3lfWRa-XtL0RnltuYv746iYTh_qHRD68BNt1uSNCrUCTJDt5aAE6x8wW1Kt9eRo4QPocSadnHXFxnt8Is9UzpERV0ePPQ"
                + "dLuW3IS_de3xyIrDaLGdjluPxUAhb6L2aXic1U12podGU0KLUQSE_oI-ZnmKJ3F4uOZDnd6QZWJushZ41Axf_fcIe8u9ipH84ogoree7vjbU5y18"
                + "kDquDg"),
    ]

    @Test(arguments: vectors)
    func `verifies what the RFC signed and not one bit else`(vector: Vector) throws {
        let key = try vector.key
        let (input, signature) = (Array(vector.input.utf8), Self.bytes(vector.signature))
        #expect(key.verify(signature: signature, signingInput: input))
        for index in signature.indices {
            var changed = signature
            changed[index] ^= 0x10
            #expect(!key.verify(signature: changed, signingInput: input))
        }
        #expect(!key.verify(signature: signature, signingInput: input + [0x2E]))
    }
}

internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// The data that a mini-program sends with its code, signed or encrypted by WeChat.
struct MiniProgramData: Sendable {
    /// `raw_data` and its `signature`.
    struct Signed: Sendable {
        let text: Secret
        let signature: Secret
    }

    /// `encrypted_data` and its `iv`, still in base64.
    struct Encrypted: Sendable {
        let text: Secret
        let vector: Secret
    }

    let signed: Signed?
    let encrypted: Encrypted?

    /// - Parameter decrypts: if `false`, encrypted data is ignored.
    /// - Returns: `nil` when there is no data to verify.
    /// - Throws: `malformed` when one of a pair is missing.
    init?(_ form: SignInForm, decrypts: Bool) throws(AuthenticationError) {
        signed = try Self.pair("raw_data", "signature", in: form).map { Signed(text: $0, signature: $1) }
        encrypted =
            decrypts ? try Self.pair("encrypted_data", "iv", in: form).map { Encrypted(text: $0, vector: $1) } : nil
        if signed == nil, encrypted == nil { return nil }
        if let encrypted {
            try Self.check(encrypted.text, "encrypted_data") { !$0.isEmpty && $0.count % AES128CBC.blockLength == 0 }
            try Self.check(encrypted.vector, "iv") { $0.count == AES128CBC.blockLength }
        }
    }

    /// Text that cannot have come from WeChat says nothing about the session key; it is rejected before the code is
    /// used.
    private static func check(
        _ text: Secret, _ member: String, _ isWhole: ([UInt8]) -> Bool
    ) throws(AuthenticationError) {
        guard text.withBytes({ decodeBase64($0) }).map(isWhole) != true else { return }
        throw .malformed(
            .signInBadMember,
            BodyError(
                member, .invalid,
                detail: "`\(member)` is not WeChat's base64. In a form, `+` has to be sent as `%2B`."))
    }

    private static func pair(
        _ first: String, _ second: String, in form: SignInForm
    ) throws(AuthenticationError) -> (Secret, Secret)? {
        switch (try form.secret(first), try form.secret(second)) {
        case (nil, nil): return nil
        case (let first?, let second?): return (first, second)
        case (nil, _): throw form.missing(first)
        case (_, nil): throw form.missing(second)
        }
    }

    /// Equal for equal data.
    var fingerprint: [UInt8] {
        let parts = [signed?.text, signed?.signature, encrypted?.text, encrypted?.vector]
        return parts.flatMap { $0?.withBytes { SHA256.digest($0) } ?? [0] }
    }
}

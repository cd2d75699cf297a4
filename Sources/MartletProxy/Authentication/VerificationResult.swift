internal import MartletCore
internal import MartletProvider

/// The result of verifying a credential.
typealias VerificationResult = Result<VerifiedPrincipal, AuthenticationError>

/// A verification result in one word, as it is passed through the phases; nearly every request has none.
final class BoxedVerificationResult {
    let result: VerificationResult

    init(_ result: VerificationResult) { self.result = result }
}

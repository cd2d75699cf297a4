package import MartletProvider

/// The result of verifying a credential.
package typealias VerificationResult = Result<VerifiedPrincipal, AuthenticationError>

/// A verification result in one word, as it is passed through the phases; nearly every request has none.
package final class BoxedVerificationResult {
    package let result: VerificationResult

    package init(_ result: VerificationResult) { self.result = result }
}

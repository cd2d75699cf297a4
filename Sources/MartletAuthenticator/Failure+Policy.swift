internal import MartletCore
package import MartletResponder
package import MartletRouter

extension CredentialState {
    /// Why the request does not pass without a credential.
    var anonymousFailure: Failure {
        hasForeignKey ? .credentialInvalid("auth.header_not_accepted") : .credentialMissing
    }
}

extension Failure {
    /// The response to a caller whom a route does not allow: 401 if another authentication suffices, otherwise 403.
    package init(_ denial: PolicyDenial) {
        self = denial.stepUp.map { .stepUp($0, denial.code) } ?? .notAllowed(denial.code)
        condition = denial.condition.isEmpty ? nil : denial.condition
    }
}

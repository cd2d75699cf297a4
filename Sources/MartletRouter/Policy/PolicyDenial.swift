package import MartletCore
package import MartletProvider

/// Why a caller may not use a route.
package struct PolicyDenial: Sendable, Hashable {
    package let code: ErrorCode
    /// The condition that failed, as logs and explanations name it: `authorize[1] email_verified`. Printable ASCII
    /// without quotes and backslashes; empty without a principal.
    package let condition: String
    /// How the caller can become allowed, if another authentication suffices.
    package let stepUp: StepUpRequirement?

    package init(_ code: ErrorCode, condition: String = "", stepUp: StepUpRequirement? = nil) {
        self.code = code
        self.condition = condition
        self.stepUp = stepUp
    }
}

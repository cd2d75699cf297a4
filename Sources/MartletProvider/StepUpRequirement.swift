/// How a caller has to authenticate again (RFC 9470): how recently, or at which level.
@frozen package struct StepUpRequirement: Sendable, Hashable {
    /// The maximum time since the user authenticated, in seconds.
    package var maximumAge: Int64?
    /// The value that the claim `acr` must have; visible ASCII without quotes and backslashes.
    package var acr: String?

    package init(maximumAge: Int64? = nil, acr: String? = nil) {
        self.maximumAge = maximumAge
        self.acr = acr
    }
}

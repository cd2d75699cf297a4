/// The providers that may verify a credential, in the order of the route.
struct AuthenticationPlan: Sendable, Equatable {
    let providers: [Int32]
}

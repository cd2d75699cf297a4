internal import MartletConfig
internal import MartletLimits

/// What the rate limits of one phase decided about a request: all of them pass it, or none counts it.
struct LimitDecisions {
    private var decisions = InlineArray<8, TokenDecision>(
        repeating: TokenDecision(isAllowed: true, missing: 0))
    /// The limit without a token whose next one comes last, or −1.
    private(set) var rejecting = -1
    private var longestWait: Int64 = -1

    /// The number of limits that it has room for.
    static let capacity = RouteLimitsConfiguration.maximumRates

    subscript(index: Int) -> TokenDecision { decisions[index] }

    /// Whether there was a token in each.
    var areAllowed: Bool { rejecting < 0 }

    /// Records what one limit decided.
    mutating func record(_ decision: TokenDecision, of index: Int, _ rate: TokenRate) {
        decisions[index] = decision
        guard !decision.isAllowed, decision.wait(rate) > longestWait else { return }
        longestWait = decision.wait(rate)
        rejecting = index
    }

    /// Whether a limit took a token, which is to be given back if the request is rejected.
    func took(_ index: Int) -> Bool { decisions[index].isAllowed }

    /// Records that a token was given back.
    mutating func gaveBack(_ index: Int, _ rate: TokenRate) { decisions[index] = decisions[index].givenBack(rate) }
}

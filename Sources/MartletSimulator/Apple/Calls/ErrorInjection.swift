/// Errors that tests have injected into the next calls, by path.
struct ErrorInjection: Sendable {
    /// How many different ones may wait.
    static let capacity = 100

    private struct Pending: Sendable {
        let path: String
        /// `nil`: calls with any grant type, or none.
        let grantType: String?
        let fault: AppleFault
        var times: Int
    }

    private var pending: [Pending] = []

    /// Injects an error into the next calls.
    /// - Returns: whether there was room for it.
    mutating func inject(_ fault: AppleFault, path: String, grantType: String?, times: Int) -> Bool {
        guard pending.count < Self.capacity else { return false }
        pending.append(Pending(path: path, grantType: grantType, fault: fault, times: times))
        return true
    }

    /// Removes what was injected into a path and not used yet.
    mutating func clear(_ path: String) { pending.removeAll { $0.path == path } }

    /// The error for a call, used up; `nil` if the call is to be handled normally.
    mutating func next(_ path: String, grantType: String?) -> AppleFault? {
        let index = pending.firstIndex { $0.path == path && ($0.grantType == nil || $0.grantType == grantType) }
        guard let index else { return nil }
        let fault = pending[index].fault
        pending[index].times -= 1
        if pending[index].times <= 0 { pending.remove(at: index) }
        return fault
    }
}

internal import MartletCore

/// The fields of responses that the rules of their routes decide about.
extension LoopState {
    /// Applies the route's rules to a response whose head was just written.
    /// - Parameter isOwn: whether it is a whole response of the gateway itself, rather than an upstream's head.
    @inline(never)
    mutating func editResponse(of exchange: Handle<Exchange>, isOwn: Bool) {
        if let rules = exchanges[exchange].response.rules.responseFields {
            let bytes = unsafe context.scratch.pending[exchange].bytes.span
            let edited = isOwn ? rules.edited(ownResponse: bytes) : rules.edited(lastHeadIn: bytes)
            context.scratch.pending[exchange].removeAll()
            context.scratch.pending[exchange].append(edited)
        }
        // Last, so that no rule of the route removes `Vary` from it.
        guard let fields = exchanges[exchange].response.rules.crossOrigin else { return }
        let bytes = unsafe context.scratch.pending[exchange].bytes.span
        let edited = ResponseFieldRules.edited(bytes, isOwn: isOwn) { head, out in
            fields.edit(head, isOwn: isOwn, into: &out)
        }
        context.scratch.pending[exchange].removeAll()
        context.scratch.pending[exchange].append(edited)
    }
}

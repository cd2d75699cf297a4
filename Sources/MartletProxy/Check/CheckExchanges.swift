internal import MartletResponder

/// What is special about the exchanges of checks: how they are counted and rejected.
enum CheckExchanges {
    /// The response to a check whose request is rejected.
    @inline(never)
    static func rejection(
        of exchange: Handle<Exchange>, _ failure: Failure, _ marks: CheckMarks, _ loop: inout LoopState
    ) -> Failure {
        count(exchange, &loop)
        return failure.ofCheck(deniesAlike: marks.contains(.deniesAlike))
    }

    /// Counts the exchange as a check of its route; called when it ends, because what waits is found by its route.
    static func count(_ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        loop.exchanges[exchange].record.routeSlot = loop.context.counters.routes.checkSlot(
            of: loop.exchanges[exchange].record.routeSlot)
    }
}

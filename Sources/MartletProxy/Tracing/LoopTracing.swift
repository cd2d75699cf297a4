internal import MartletDecisions
internal import MartletResponder
internal import MartletTracing

/// Which requests of a loop are sampled, and the spans of those in progress.
///
/// A request that is not sampled has nothing here, unless a trusted proxy has named its trace: what follows from its
/// handle and its time is worked out again whenever it is asked for.
struct LoopTracing: ~Copyable {
    /// An attempt to send a request to an endpoint.
    struct Attempt {
        let id: SpanID
        let number: Int
        let start: Int64
        let attributes: [SpanAttribute]
    }

    /// What is kept of a request.
    struct Entry {
        var owner = Handle<Exchange>.none
        /// What a trusted proxy says.
        var parent: TraceContext?
        var state: [UInt8] = []
        /// The spans of a sampled request.
        var trace: RequestTrace?
        /// The verification of its credential that it waits for: the span, and when it began.
        var verification: (id: SpanID, start: Int64)?
        var attempt: Attempt?
        var client = ClientHead()
    }

    /// What the head of a sampled request says about its client.
    struct ClientHead {
        var userAgent: String?
        /// The scheme and the authority that a trusted proxy has named.
        var scheme: String?
        var authority: String?
        /// A method that has no name of its own here.
        var method: String?
    }

    /// Whether requests are traced, or some in progress may be.
    private(set) var isOn = false
    private(set) var rules: TracingRules?
    /// That of `rules`, which is not copied with it for every request.
    private var sampler: TraceSampler?
    private let receiver: (any SpanReceiving)?
    private let source: TraceIDSource
    /// By the index of the exchange.
    private var entries: [Entry] = []
    private var finished: [FinishedTrace] = []
    /// The last sampled request of each bucket of the latency histogram.
    private var exemplars: [ExemplarSlot: LoopReport.Exemplar] = [:]

    /// A route's bucket of the latency histogram.
    private struct ExemplarSlot: Hashable {
        let route: Int32
        let bucket: Int
    }

    /// - Parameter receiver: gets the spans; `nil` for listeners of the gateway itself, which trace nothing.
    init(_ receiver: (any SpanReceiving)?, seeds first: UInt64, _ second: UInt64) {
        self.receiver = receiver
        source = TraceIDSource(seeds: first, second)
    }

    /// Applies a configuration. What was traced before may be in progress.
    mutating func adopt(_ next: TracingRules?) {
        rules = next
        sampler = next?.sampler
        isOn = receiver != nil && (next != nil || isOn)
    }

    /// Notes the context that a trusted proxy has sent with a request, unless there is one already.
    mutating func note(_ parent: TraceContext, state: [UInt8], of exchange: Handle<Exchange>) {
        guard rules?.continuesParents == true, owned(exchange)?.parent == nil, owned(exchange)?.trace == nil else {
            return
        }
        change(exchange) { entry in (entry.parent, entry.state) = (parent, state) }
    }

    /// The trace of a request: that of its parent, or one of its own.
    /// - Parameter started: when it began.
    /// - Returns: `nil` where requests are not traced.
    @inline(__always)
    func identity(of exchange: Handle<Exchange>, started: Int64) -> TraceIdentity? {
        guard let sampler else { return nil }
        let (trace, span) = source.ids(ofRequest: exchange.raw, at: started)
        guard isKept(exchange), let parent = entries[exchange.offset].parent else {
            return TraceIdentity(trace: trace, span: span, isSampled: sampler.samples(trace))
        }
        return TraceIdentity(trace: parent.trace, span: span, isSampled: parent.isSampled)
    }

    /// `tracestate` of a request's parent; may be empty.
    func state(of exchange: Handle<Exchange>) -> [UInt8] {
        isKept(exchange) ? entries[exchange.offset].state : []
    }

    /// The spans of a request whose head has been written; `nil` if it is not sampled.
    ///
    /// A head is written with the trace, so nothing has to be worked out again.
    @inline(__always)
    func traceOfWritten(_ exchange: Handle<Exchange>) -> RequestTrace? {
        isKept(exchange) ? entries[exchange.offset].trace : nil
    }

    /// The spans of a request; `nil` if it is not sampled.
    mutating func trace(of exchange: Handle<Exchange>, started: Int64) -> RequestTrace? {
        if let known = traceOfWritten(exchange) { return known }
        guard let receiver, let identity = identity(of: exchange, started: started), identity.isSampled else {
            return nil
        }
        let parent = owned(exchange)?.parent?.parent
        let trace = RequestTrace(
            identity.trace, server: identity.span, parent: parent, traceState: state(of: exchange), source: source,
            receiver: receiver)
        change(exchange) { $0.trace = trace }
        return trace
    }

    /// Changes what is kept of a request.
    mutating func change(_ exchange: Handle<Exchange>, _ body: (inout Entry) -> Void) {
        while entries.count <= exchange.offset { entries.append(Entry()) }
        if entries[exchange.offset].owner != exchange {
            entries[exchange.offset] = Entry()
            entries[exchange.offset].owner = exchange
        }
        body(&entries[exchange.offset])
    }

    /// What is kept of a request, if anything.
    func owned(_ exchange: Handle<Exchange>) -> Entry? { isKept(exchange) ? entries[exchange.offset] : nil }

    /// What the head of a sampled request says about its client.
    func client(of exchange: Handle<Exchange>) -> ClientHead? {
        isKept(exchange) ? entries[exchange.offset].client : nil
    }

    /// The attempt to send a sampled request that is under way.
    func attempt(of exchange: Handle<Exchange>) -> Attempt? {
        isKept(exchange) ? entries[exchange.offset].attempt : nil
    }

    /// Whether anything is kept of a request.
    @inline(__always)
    func isKept(_ exchange: Handle<Exchange>) -> Bool {
        exchange.offset < entries.count && entries[exchange.offset].owner == exchange
    }

    /// Forgets a request.
    mutating func release(_ exchange: Handle<Exchange>) {
        if isKept(exchange) { entries[exchange.offset] = Entry() }
    }

    /// Keeps the spans of a request that has ended, until they are handed over.
    mutating func add(_ trace: FinishedTrace) { finished.append(trace) }

    /// Hands the spans over.
    mutating func flush() {
        guard !finished.isEmpty else { return }
        receiver?.take(finished)
        finished.removeAll(keepingCapacity: true)
    }

    /// Notes a sampled request as the example of its bucket.
    mutating func note(_ exemplar: LoopReport.Exemplar, route: RouteSlot) {
        exemplars[ExemplarSlot(route: route.rawValue, bucket: exemplar.bucket)] = exemplar
    }

    /// An example for each bucket that has one.
    var report: [LoopReport.Exemplar] { Array(exemplars.values) }
}

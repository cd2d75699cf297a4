import MartletTracing
import Testing

/// `traceparent` and `tracestate` as W3C Trace Context, level 1, defines them.
@Suite struct `Trace contexts` {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    private func read(_ text: String) -> TraceContext? { TraceContext(traceparent: Array(text.utf8)) }

    @Test func `a valid value is read and written again`() throws {
        for flags in ["00", "01"] {
            let text = "00-\(Self.trace)-\(Self.span)-\(flags)"
            let context = try #require(read(text))
            #expect(context.text == text && context.isSampled == (flags == "01"))
            #expect(context.trace.text == Self.trace && context.parent.text == Self.span)
        }
        // Flags that this version does not know are cleared.
        #expect(read("00-\(Self.trace)-\(Self.span)-ff")?.text == "00-\(Self.trace)-\(Self.span)-01")
        #expect(read("00-\(Self.trace)-\(Self.span)-02")?.isSampled == false)
    }

    @Test func `of a later version, the known part is read`() {
        #expect(read("01-\(Self.trace)-\(Self.span)-01")?.isSampled == true)
        #expect(read("cc-\(Self.trace)-\(Self.span)-01-more")?.isSampled == true)
        #expect(read("cc-\(Self.trace)-\(Self.span)-01more") == nil)
        #expect(read("cc-\(Self.trace)-\(Self.span)-01.") == nil)
    }

    @Test(
        arguments: [
            "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-1", "00-\(trace)-\(span)-01-",
            "00-\(trace)-\(span)-01 ",
            "00-\(trace)-\(span)-01-more", "ff-\(trace)-\(span)-01", "0-\(trace)-\(span)-001",
            "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
            "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span)-0g", "00_\(trace)-\(span)-01",
            "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01", "0x-\(trace)-\(span)-01",
            "00-\(trace)\(span)--01-", " 00-\(trace)-\(span)-01", "00-\(trace)-+0f067aa0ba902b7-01",
        ])
    func `an invalid value is none`(_ text: String) { #expect(read(text) == nil) }

    @Test func `a list of states is joined, trimmed, and kept in its order`() {
        func joined(_ values: String...) -> String {
            String(decoding: TraceState.joined(values.map { Array($0.utf8) }), as: UTF8.self)
        }
        #expect(joined("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE") == "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
        #expect(joined("a=1", " b=2 ,\tc=3,, ") == "a=1,b=2,c=3")
        #expect(joined("fw529a3039@dt=x, 0tenant@v=y") == "fw529a3039@dt=x,0tenant@v=y")
        #expect(joined("a_-*/0= !~") == "a_-*/0= !~")
        #expect(joined() == "" && joined("") == "")
        for bad in [
            "a", "=1", "A=1", "0a=1", "a=1,a=2", "a=1=2", "a=\u{1}", "a=é", "a@=1", "@a=1", "a@0b=1", "a@b@c=1",
            "a=1,b", "a=", "\(String(repeating: "a", count: 257))=1", "a@\(String(repeating: "b", count: 15))=1",
            "a=\(String(repeating: "x", count: 257))", (0..<33).map { "a\($0)=1" }.joined(separator: ","),
            (0..<4).map { "a\($0)=\(String(repeating: "x", count: 130))" }.joined(separator: ","),
        ] {
            #expect(joined(bad) == "", "\(bad)")
        }
        #expect(joined((0..<32).map { "a\($0)=1" }.joined(separator: ",")) != "")
    }

    @Test func `a request has the same IDs whenever it is asked for, and no other has them`() {
        let source = TraceIDSource(seeds: 1, 2)
        var traces: Set<TraceID> = []
        for request in 0..<100 as Range<UInt64> {
            for started in 0..<100 as Range<Int64> {
                let trace = source.ids(ofRequest: request, at: started).trace
                #expect(trace.isValid && trace == source.ids(ofRequest: request, at: started).trace)
                traces.insert(trace)
            }
        }
        #expect(traces.count == 10_000)
        #expect(TraceIDSource(seeds: 1, 3).ids(ofRequest: 1, at: 1) != source.ids(ofRequest: 1, at: 1))
        let server = source.ids(ofRequest: 1, at: 1).span
        let spans = Set((1..<1000).map { source.spanID(UInt64($0), after: server) })
        #expect(spans.count == 999 && !spans.contains(server) && spans.allSatisfy(\.isValid))
    }

    @Test func `the share of traces that is sampled is the configured one, and a larger one has the smaller`() {
        let source = TraceIDSource(seeds: 7, 8)
        let traces = (0..<100_000).map { source.ids(ofRequest: UInt64($0), at: 5).trace }
        for (millionths, expected) in [(0, 0...0), (10_000, 800...1200), (500_000, 49_000...51_000)] {
            let sampler = TraceSampler(millionths: millionths)
            #expect(expected.contains(traces.count { sampler.samples($0) }), "\(millionths)")
        }
        #expect(traces.allSatisfy { TraceSampler(millionths: 1_000_000).samples($0) })
        #expect(TraceSampler(millionths: 1_000_000).samples(TraceID(high: 1, low: 0)))
        let (few, many) = (TraceSampler(millionths: 10_000), TraceSampler(millionths: 20_000))
        #expect(traces.allSatisfy { !few.samples($0) || many.samples($0) })
        // The first half of an ID has no say: others that see the trace decide by its end, too.
        #expect(few.samples(TraceID(high: 0, low: .max)) && few.samples(TraceID(high: .max, low: .max)))
    }
}

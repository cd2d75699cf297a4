/// The body of a request to the collector: OTLP 1.x as JSON (the JSON mapping of `ExportTraceServiceRequest`).
package struct TraceDocument {
    /// Who reports.
    package struct Resource: Sendable, Equatable {
        package let version: String
        package let instance: String

        package init(version: String, instance: String) { (self.version, self.instance) = (version, instance) }
    }

    private var out: [UInt8] = []

    /// Writes the spans of some requests.
    package static func bytes(of traces: [FinishedTrace], from resource: Resource) -> [UInt8] {
        var document = TraceDocument()
        document.out.reserveCapacity(traces.reduce(1024) { $0 + $1.spans.reduce(0) { $0 + $1.size } })
        document.write(traces, resource)
        return document.out
    }

    private mutating func write(_ traces: [FinishedTrace], _ resource: Resource) {
        put("{\"resourceSpans\":[{\"resource\":{\"attributes\":")
        write([
            SpanAttribute("service.name", "martlet"), SpanAttribute("service.version", resource.version),
            SpanAttribute("service.instance.id", resource.instance),
        ])
        put("},\"scopeSpans\":[{\"scope\":{\"name\":\"martlet\",\"version\":")
        quote(resource.version)
        put("},\"spans\":[")
        var isFirst = true
        for trace in traces {
            let (id, state) = (trace.trace.text, String(decoding: trace.state, as: UTF8.self))
            for span in trace.spans {
                if !isFirst { put(",") }
                isFirst = false
                write(span, id, state, trace.clockOffset)
            }
        }
        put("]}]}]}")
    }

    private mutating func write(_ span: TraceSpan, _ trace: String, _ state: String, _ offset: Int64) {
        put("{\"traceId\":\"\(trace)\",\"spanId\":\"\(span.id.text)\"")
        if let parent = span.parent { put(",\"parentSpanId\":\"\(parent.text)\"") }
        if !state.isEmpty {
            put(",\"traceState\":")
            quote(state)
        }
        put(",\"name\":")
        quote(span.name)
        // 64-bit numbers are texts in the JSON mapping of Protocol Buffers.
        put(",\"kind\":\(span.kind.rawValue),\"startTimeUnixNano\":\"\(max(span.start &+ offset, 0))\"")
        put(",\"endTimeUnixNano\":\"\(max(max(span.end, span.start) &+ offset, 0))\",\"attributes\":")
        write(span.attributes)
        put(span.hasFailed ? ",\"status\":{\"code\":2}}" : ",\"status\":{}}")
    }

    private mutating func write(_ attributes: [SpanAttribute]) {
        put("[")
        for (index, attribute) in attributes.enumerated() {
            put(index > 0 ? ",{\"key\":" : "{\"key\":")
            quote(attribute.name)
            switch attribute.value {
            case .text(let text):
                put(",\"value\":{\"stringValue\":")
                quote(text)
            case .number(let number): put(",\"value\":{\"intValue\":\"\(number)\"")
            case .flag(let flag): put(",\"value\":{\"boolValue\":\(flag)")
            }
            put("}}")
        }
        put("]")
    }

    private mutating func put(_ text: String) { out.append(contentsOf: text.utf8) }

    private mutating func quote(_ text: String) {
        out.append(0x22)
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x5C: out += [0x5C, byte]
            case ..<0x20, 0x7F: put("\\u00\(byte < 16 ? "0" : "")\(String(byte, radix: 16))")
            default: out.append(byte)
            }
        }
        out.append(0x22)
    }
}

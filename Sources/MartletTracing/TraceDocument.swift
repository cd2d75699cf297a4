internal import MartletJSON

/// The body of a request to the collector: OTLP 1.x as JSON (the JSON mapping of `ExportTraceServiceRequest`).
package struct TraceDocument {
    /// Who reports.
    package struct Resource: Sendable, Equatable {
        package let version: String
        package let instance: String

        package init(version: String, instance: String) { (self.version, self.instance) = (version, instance) }
    }

    private var out = JSONWriter()

    /// Writes the spans of some requests.
    package static func bytes(of traces: [FinishedTrace], from resource: Resource) -> [UInt8] {
        var document = TraceDocument()
        document.out.reserve(traces.reduce(1024) { $0 + $1.spans.reduce(0) { $0 + $1.size } })
        document.write(traces, resource)
        return document.out.bytes
    }

    private mutating func write(_ traces: [FinishedTrace], _ resource: Resource) {
        out.append("{\"resourceSpans\":[{\"resource\":{\"attributes\":")
        write([
            SpanAttribute("service.name", "martlet"), SpanAttribute("service.version", resource.version),
            SpanAttribute("service.instance.id", resource.instance),
        ])
        out.append("},\"scopeSpans\":[{\"scope\":{\"name\":\"martlet\",\"version\":")
        out.write(resource.version)
        out.append("},\"spans\":[")
        var isFirst = true
        for trace in traces {
            let (id, state) = (trace.trace.text, String(decoding: trace.state, as: UTF8.self))
            for span in trace.spans {
                if !isFirst { out.append(",") }
                isFirst = false
                write(span, id, state, trace.clockOffset)
            }
        }
        out.append("]}]}]}")
    }

    private mutating func write(_ span: TraceSpan, _ trace: String, _ state: String, _ offset: Int64) {
        out.append("{\"traceId\":\"\(trace)\",\"spanId\":\"\(span.id.text)\"")
        if let parent = span.parent { out.append(",\"parentSpanId\":\"\(parent.text)\"") }
        if !state.isEmpty {
            out.append(",\"traceState\":")
            out.write(state)
        }
        out.append(",\"name\":")
        out.write(span.name)
        // 64-bit numbers are texts in the JSON mapping of Protocol Buffers.
        out.append(",\"kind\":\(span.kind.rawValue),\"startTimeUnixNano\":\"\(max(span.start &+ offset, 0))\"")
        out.append(",\"endTimeUnixNano\":\"\(max(max(span.end, span.start) &+ offset, 0))\",\"attributes\":")
        write(span.attributes)
        out.append(span.hasFailed ? ",\"status\":{\"code\":2}}" : ",\"status\":{}}")
    }

    private mutating func write(_ attributes: [SpanAttribute]) {
        out.append("[")
        for (index, attribute) in attributes.enumerated() {
            out.append(index > 0 ? ",{\"key\":" : "{\"key\":")
            out.write(attribute.name)
            switch attribute.value {
            case .text(let text):
                out.append(",\"value\":{\"stringValue\":")
                out.write(text)
            case .number(let number): out.append(",\"value\":{\"intValue\":\"\(number)\"")
            case .flag(let flag): out.append(",\"value\":{\"boolValue\":\(flag)")
            }
            out.append("}}")
        }
        out.append("]")
    }
}

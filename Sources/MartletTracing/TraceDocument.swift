internal import MartletCore
internal import MartletJSON

/// The body of a request to the collector: OTLP 1.x as JSON (the JSON mapping of `ExportTraceServiceRequest`).
package struct TraceDocument: ~Copyable {
    /// Who reports.
    package struct Resource: Sendable, Equatable {
        package let version: String
        package let instance: String

        package init(version: String, instance: String) { (self.version, self.instance) = (version, instance) }
    }

    private var out = ByteBuffer()

    /// Writes the spans of some requests.
    package static func bytes(of traces: [FinishedTrace], from resource: Resource) -> [UInt8] {
        var document = TraceDocument()
        document.out.reserve(traces.reduce(1024) { $0 + $1.spans.reduce(0) { $0 + $1.size } })
        document.write(traces, resource)
        return document.out.array
    }

    private mutating func write(_ traces: [FinishedTrace], _ resource: Resource) {
        out.append("{\"resourceSpans\":[{\"resource\":{\"attributes\":")
        write([
            SpanAttribute("service.name", "martlet"), SpanAttribute("service.version", resource.version),
            SpanAttribute("service.instance.id", resource.instance),
        ])
        out.append("},\"scopeSpans\":[{\"scope\":{\"name\":\"martlet\",\"version\":")
        write(resource.version)
        out.append("},\"spans\":[")
        var isFirst = true
        for trace in traces {
            let state = String(decoding: trace.state, as: UTF8.self)
            for span in trace.spans {
                if !isFirst { out.append(",") }
                isFirst = false
                write(span, trace.trace, state, trace.clockOffset)
            }
        }
        out.append("]}]}]}")
    }

    private mutating func write(_ span: TraceSpan, _ trace: TraceID, _ state: String, _ offset: Int64) {
        out.append("{\"traceId\":\"")
        out.append(sixteenDigits: trace.high)
        out.append(sixteenDigits: trace.low)
        out.append("\",\"spanId\":\"")
        out.append(sixteenDigits: span.id.number)
        if let parent = span.parent {
            out.append("\",\"parentSpanId\":\"")
            out.append(sixteenDigits: parent.number)
        }
        out.append("\"")
        if !state.isEmpty {
            out.append(",\"traceState\":")
            write(state)
        }
        out.append(",\"name\":")
        write(span.name)
        out.append(",\"kind\":")
        out.append(decimal: span.kind.rawValue)
        // 64-bit numbers are texts in the JSON mapping of Protocol Buffers.
        out.append(",\"startTimeUnixNano\":\"")
        out.append(decimal: Int(max(span.start &+ offset, 0)))
        out.append("\",\"endTimeUnixNano\":\"")
        out.append(decimal: Int(max(max(span.end, span.start) &+ offset, 0)))
        out.append("\",\"attributes\":")
        write(span.attributes)
        out.append(span.hasFailed ? ",\"status\":{\"code\":2}}" : ",\"status\":{}}")
    }

    private mutating func write(_ attributes: [SpanAttribute]) {
        out.append("[")
        for (index, attribute) in attributes.enumerated() {
            out.append(index > 0 ? ",{\"key\":" : "{\"key\":")
            write(attribute.name)
            switch attribute.value {
            case .text(let text):
                out.append(",\"value\":{\"stringValue\":")
                write(text)
            case .number(let number):
                out.append(",\"value\":{\"intValue\":\"")
                out.append(decimal: number)
                out.append("\"")
            case .flag(let flag):
                out.append(flag ? ",\"value\":{\"boolValue\":true" : ",\"value\":{\"boolValue\":false")
            }
            out.append("}}")
        }
        out.append("]")
    }

    /// Writes a text as a JSON string: most have nothing to escape, and are copied as they stand.
    private mutating func write(_ text: String) {
        let isCopied = unsafe text.utf8Span.span.withUnsafeBufferPointer { bytes in
            guard unsafe Self.isPlain(bytes) else { return false }
            out.append("\"")
            unsafe out.append(bytes)
            out.append("\"")
            return true
        }
        guard !isCopied else { return }
        var writer = JSONWriter()
        writer.write(text)
        out.append(writer.bytes)
    }

    /// Whether a text has neither control characters nor quotes nor backslashes; eight bytes are looked at together.
    private static func isPlain(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        let bytes = UnsafeRawBufferPointer(text)
        var index = 0
        while index &+ 8 <= bytes.count {
            if isEscaped(unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)) { return false }
            index &+= 8
        }
        var rest = ones &* 0x20
        while index < bytes.count {
            rest = rest &<< 8 | UInt64(unsafe bytes[index])
            index &+= 1
        }
        return !isEscaped(rest)
    }

    private static var ones: UInt64 { 0x0101_0101_0101_0101 }

    /// Whether any of eight bytes is below 0x20, or is a quote, a backslash or DEL.
    @inline(__always)
    private static func isEscaped(_ word: UInt64) -> Bool {
        var found = (word &- ones &* 0x20) & ~word
        // A difference is zero where the byte is the one that is sought; subtracting one from it borrows from bit 7.
        let (quotes, backslashes, deletes) = (word ^ ones &* 0x22, word ^ ones &* 0x5C, word ^ ones &* 0x7F)
        found |= (quotes &- ones) & ~quotes
        found |= (backslashes &- ones) & ~backslashes
        found |= (deletes &- ones) & ~deletes
        return found & (ones &<< 7) != 0
    }
}

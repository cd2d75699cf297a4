internal import MartletConfig
internal import MartletCore
internal import MartletDecisions

/// Columns of a line, compiled to segments of one text, with the values that stand between them.
///
/// What a line has never contains a token or a query.
struct AccessTemplate: ~Copyable {
    /// A value: where the text ends that stands before it, and the text that stands behind it.
    struct Step {
        let field: AccessField
        let omitsEmpty: Bool
        let value: Int
        let end: Int
    }

    private var text = ByteBuffer()
    private var steps = FlatList<Step>()

    mutating func compile(_ columns: some Sequence<AccessColumn>) {
        text.removeAll()
        steps.removeAll()
        for column in columns {
            text.append(text: column.before)
            let value = text.count
            text.append(text: column.after)
            steps.append(
                Step(field: column.field, omitsEmpty: column.omitsEmpty, value: value, end: text.count))
        }
    }

    /// Appends the columns of a request.
    ///
    /// The buffer is passed by value, in and out: in a local, its bounds stay in registers.
    @inline(never)
    mutating func write(
        _ facts: inout AccessFacts, _ request: inout RequestTexts, _ buffer: consuming ByteBuffer
    ) -> ByteBuffer {
        var out = buffer
        var start = 0
        for index in steps.indices {
            let step = steps[index]
            let count = out.count
            unsafe out.append(part(start, step.value))
            let value = out.count
            if out.append(step.field, &facts, &request), !step.omitsEmpty || out.count > value {
                unsafe out.append(part(step.value, step.end))
            } else {
                out.truncate(to: count)
            }
            start = step.end
        }
        return out
    }

    @inline(__always)
    private func part(_ start: Int, _ end: Int) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(rebasing: text.bytes[start..<end])
    }
}

extension ByteBuffer {
    /// Ends a line: every column is followed by what separates it from the next one.
    mutating func endLine(_ format: AccessFormat) {
        let last = unsafe bytes.last
        if last == 0x2C || last == 0x20 { truncate(to: count - 1) }
        append(format == .json ? "}\n" : "\n")
    }
}

private import CYAML

/// An event of a YAML stream, with its position.
struct YAMLEvent {
    enum Content {
        case documentStart
        case scalar(ConfigurationNode.Scalar)
        case sequenceStart
        case mappingStart
        case collectionEnd
        case alias(String)
        case streamEnd
        /// Stream start and document end, which need no action.
        case other
    }

    var content: Content
    /// From 1.
    var line: Int
    /// From 1, in characters.
    var column: Int
    /// The line on which it ends.
    var endLine: Int
    var anchor: String?
    var hasTag = false
}

/// A YAML syntax error with its position.
struct YAMLError: Error {
    var line: Int
    var column: Int
    var reason: String
}

/// libyaml's event parser over a copy of the text.
@safe struct YAMLParser: ~Copyable {
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let input: UnsafeMutableBufferPointer<UInt8>

    init(_ bytes: [UInt8]) throws(YAMLError) {
        unsafe input = .allocate(capacity: max(bytes.count, 1))
        _ = unsafe input.initialize(from: bytes)
        unsafe parser = .allocate(capacity: 1)
        guard unsafe yaml_parser_initialize(parser) == 1 else {
            unsafe parser.deallocate()
            unsafe input.deallocate()
            throw YAMLError(line: 1, column: 1, reason: "out of memory")
        }
        unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        unsafe yaml_parser_set_input_string(parser, input.baseAddress, bytes.count)
    }

    deinit {
        unsafe yaml_parser_delete(parser)
        unsafe parser.deallocate()
        unsafe input.deallocate()
    }

    /// The next event; must not be called after `streamEnd` or an error.
    mutating func next() throws(YAMLError) -> YAMLEvent {
        var event = unsafe yaml_event_t()
        guard unsafe yaml_parser_parse(parser, &event) == 1 else { throw lastError() }
        defer { unsafe yaml_event_delete(&event) }
        let mark = unsafe event.start_mark
        let endLine = unsafe Int(clamping: event.end_mark.line) + 1
        var result = YAMLEvent(
            content: .other, line: Int(clamping: mark.line) + 1, column: Int(clamping: mark.column) + 1,
            endLine: endLine)
        switch unsafe event.type {
        case YAML_STREAM_END_EVENT: result.content = .streamEnd
        case YAML_DOCUMENT_START_EVENT: result.content = .documentStart
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: result.content = .collectionEnd
        case YAML_ALIAS_EVENT:
            result.content = .alias(unsafe Self.text(event.data.alias.anchor) ?? "")
        case YAML_SCALAR_EVENT:
            let scalar = unsafe event.data.scalar
            let bytes = unsafe UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            let isPlain = unsafe scalar.style == YAML_PLAIN_SCALAR_STYLE
            result.content = .scalar(.init(unsafe String(decoding: bytes, as: UTF8.self), isPlain: isPlain))
            result.anchor = unsafe Self.text(scalar.anchor)
            result.hasTag = unsafe scalar.tag != nil
        case YAML_SEQUENCE_START_EVENT:
            result.content = .sequenceStart
            result.anchor = unsafe Self.text(event.data.sequence_start.anchor)
            result.hasTag = unsafe event.data.sequence_start.tag != nil
        case YAML_MAPPING_START_EVENT:
            result.content = .mappingStart
            result.anchor = unsafe Self.text(event.data.mapping_start.anchor)
            result.hasTag = unsafe event.data.mapping_start.tag != nil
        default: break
        }
        return result
    }

    private static func text(_ bytes: UnsafeMutablePointer<yaml_char_t>?) -> String? {
        guard let bytes = unsafe bytes else { return nil }
        return unsafe String(decodingCString: bytes, as: UTF8.self)
    }

    /// libyaml's message with the position; reader errors have a byte offset instead of a mark.
    private func lastError() -> YAMLError {
        let state = unsafe parser.pointee
        let problem = unsafe state.problem.map { unsafe String(cString: $0) } ?? "cannot be parsed"
        if unsafe state.error == YAML_READER_ERROR {
            let (line, column) = position(ofByte: unsafe state.problem_offset)
            return YAMLError(line: line, column: column, reason: problem)
        }
        let mark = unsafe state.problem_mark
        let context = unsafe state.context.map { unsafe String(cString: $0) + ": " } ?? ""
        let (line, column) = (Int(clamping: mark.line) + 1, Int(clamping: mark.column) + 1)
        let (before, at) = characters(at: mark.index)
        if at == 0x09, problem == "found character that cannot start any token" {
            return YAMLError(line: line, column: column, reason: "tabs cannot be used for indentation: use spaces")
        }
        if at == 0x7B, before == 0x24 {
            return YAMLError(line: line, column: column, reason: "'${' inside { } or [ ] must be quoted")
        }
        return YAMLError(line: line, column: column, reason: context + problem)
    }

    /// The first byte of the character at an index, and the byte before it.
    private func characters(at index: Int) -> (before: UInt8, at: UInt8) {
        var characters = 0
        var before: UInt8 = 0
        for byte in unsafe Array(input) {
            if byte & 0xC0 != 0x80 { characters += 1 }
            if characters > index { return (before, byte) }
            before = byte
        }
        return (before, 0)
    }

    private func position(ofByte offset: Int) -> (line: Int, column: Int) {
        var (line, column) = (1, 1)
        for byte in unsafe Array(input.prefix(offset)) {
            if byte == 0x0A {
                (line, column) = (line + 1, 1)
            } else if byte & 0xC0 != 0x80 {
                column += 1
            }
        }
        return (line, column)
    }
}

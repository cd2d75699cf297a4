internal import MartletCore

/// Reads a template, and decides by its markup how each value is escaped.
struct TemplateParser {
    /// Sections within sections.
    static let maximumDepth = 8
    static let maximumName = 64

    private typealias Node = PageTemplate.Node

    /// A section that is not closed yet; the outermost one is the template.
    private struct Section {
        var name = ""
        var isInverted = false
        /// The values that it adds.
        var schema: TemplateSchema?
        var nodes: [Node] = []
        var position: Int
    }

    /// A form that is not closed yet.
    private struct Form {
        /// Of the end of its name.
        let position: Int
        var isTagComplete = false
        var hasToken = false
    }

    private let bytes: [UInt8]
    private let file: String
    private var sections: [Section]
    private var scanner = MarkupScanner()
    private var index = 0
    private var literal: [UInt8] = []
    /// Where in `literal` the last attribute begins.
    private var attributeStart = 0
    private var form: Form?
    /// Whether forms need the page's token; signing out does not.
    private let needsToken: Bool

    init(_ bytes: [UInt8], _ schema: TemplateSchema, file: String) throws(TemplateError) {
        self.bytes = bytes
        self.file = file
        sections = [Section(schema: schema, position: 0)]
        needsToken = schema.hasToken
        guard bytes.count <= PageTemplate.maximumBytes else {
            let text = "the template is larger than \(PageTemplate.maximumBytes / 1024) KiB"
            throw error(.templateTooLarge, text, at: 0)
        }
        guard let invalid = Self.invalidOffset(bytes) else { return }
        throw error(.templateSyntax, "the template is not UTF-8", at: invalid)
    }

    mutating func parse() throws(TemplateError) -> [PageTemplate.Node] {
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "{"), index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: "{") {
                try readBraces()
            } else {
                try readMarkup(bytes[index])
                index += 1
            }
        }
        try checkForm()
        guard scanner.isInText else {
            throw error(.templateSyntax, "the template ends inside \(surroundings)", at: bytes.count)
        }
        flush()
        guard sections.count == 1, let nodes = sections.first?.nodes else {
            let open = sections[sections.count - 1]
            throw error(.templateSyntax, "the section '\(open.name)' is not closed", at: open.position)
        }
        return nodes
    }

    /// What the position is in, for messages.
    private var surroundings: String {
        if case .forbidden(let reason) = scanner.context { reason.rawValue } else { "an element's text or attribute" }
    }

    // MARK: Markup

    private mutating func readMarkup(_ byte: UInt8) throws(TemplateError) {
        scanner.read(byte)
        if scanner.beganAttribute { attributeStart = literal.count }
        literal.append(byte)
        if scanner.begunElement == "script" {
            throw error(.templateScript, "scripts do not run on these pages", at: index)
        }
        if scanner.begunElement == "form" {
            try checkForm()
            form = Form(position: index)
        }
        if form?.isTagComplete == false, scanner.isInText { try checkFormTag() }
        if scanner.endedElement == "form" { try checkForm() }
    }

    /// A form with `get` would put passwords into the URL, and with it into histories and logs.
    private mutating func checkFormTag() throws(TemplateError) {
        guard let position = form?.position else { return }
        guard Self.posts(bytes[position...index]) else {
            throw error(.templateIncomplete, "this form has no method=\"post\"", at: position)
        }
        form?.isTagComplete = true
    }

    private mutating func checkForm() throws(TemplateError) {
        if needsToken, let form, !form.hasToken {
            throw error(.templateIncomplete, "this form has no field with the value {{csrf}}", at: form.position)
        }
        form = nil
    }

    private mutating func flush() {
        if !literal.isEmpty { append(.literal(String(decoding: literal, as: UTF8.self))) }
        literal.removeAll(keepingCapacity: true)
        attributeStart = 0
    }

    private mutating func append(_ node: Node) { sections[sections.count - 1].nodes.append(node) }

    // MARK: Braces

    private mutating func readBraces() throws(TemplateError) {
        let start = index
        guard let end = endOfBraces() else { throw error(.templateSyntax, "'{{' is not closed by '}}'", at: start) }
        let content = String(decoding: bytes[(start + 2)..<end], as: UTF8.self)
        index = end + 2
        let mark = content.first
        if mark == "!" { return }
        let isSection = mark == "#" || mark == "^" || mark == "/"
        let name = Self.trimmed(isSection ? content.dropFirst() : content[...])
        guard !name.isEmpty, name.utf8.count <= Self.maximumName, name.utf8.allSatisfy(Self.isNameByte) else {
            throw error(.templateSyntax, "a name has letters, digits, '_' and '.' alone", at: start)
        }
        switch mark {
        case "#", "^": try openSection(name, isInverted: mark == "^", at: start)
        case "/": try closeSection(name, at: start)
        default: try readValue(name, at: start)
        }
    }

    private func endOfBraces() -> Int? {
        var end = index + 2
        while end + 1 < bytes.count {
            if bytes[end] == UInt8(ascii: "}"), bytes[end + 1] == UInt8(ascii: "}") { return end }
            end += 1
        }
        return nil
    }

    private mutating func openSection(_ name: String, isInverted: Bool, at start: Int) throws(TemplateError) {
        guard scanner.isInText else {
            throw error(.templatePosition, "a section may not begin in \(surroundings)", at: start)
        }
        guard sections.count <= Self.maximumDepth else {
            throw error(.templateSyntax, "more than \(Self.maximumDepth) sections in each other", at: start)
        }
        guard !sections.contains(where: { $0.name == name && !$0.isInverted && $0.schema != nil }) else {
            throw error(.templateSyntax, "the section '\(name)' is open already", at: start)
        }
        var section = Section(name: name, isInverted: isInverted, position: start)
        if case .list(let schema) = try kind(of: name, at: start), !isInverted { section.schema = schema }
        flush()
        sections.append(section)
    }

    private mutating func closeSection(_ name: String, at start: Int) throws(TemplateError) {
        guard scanner.isInText else {
            throw error(.templatePosition, "a section may not end in \(surroundings)", at: start)
        }
        flush()
        guard sections.count > 1, let section = sections.popLast(), section.name == name else {
            throw error(.templateSyntax, "there is no open section '\(name)' here", at: start)
        }
        append(.section(name, isInverted: section.isInverted, section.nodes))
    }

    private mutating func readValue(_ name: String, at start: Int) throws(TemplateError) {
        let node: Node
        let isURL: Bool
        if name.hasPrefix("word.") {
            node = .word(try word(name, at: start))
            isURL = false
        } else {
            switch try kind(of: name, at: start) {
            case .list: throw error(.templateSyntax, "'\(name)' is a list: write '{{#\(name)}}'", at: start)
            case .text: isURL = false
            case .url: isURL = true
            }
            node = .text(name)
        }
        switch scanner.context {
        case .forbidden(let reason):
            throw error(.templatePosition, "no value may be in \(reason.rawValue)", at: start)
        case .url where !isURL: throw error(.templatePosition, "'\(name)' is not a URL", at: start)
        case .url: try readURL(name, at: start)
        case .text, .attribute:
            if name == "csrf", scanner.context == .attribute { form?.hasToken = true }
            flush()
            append(node)
            scanner.insertValue()
        }
    }

    /// The attribute becomes one part of the template, so that it can be dropped.
    private mutating func readURL(_ name: String, at start: Int) throws(TemplateError) {
        let quote = literal.last
        guard let quote, index < bytes.count, bytes[index] == quote else {
            throw error(.templatePosition, "a URL has to be the whole value of its attribute", at: start)
        }
        let prefix = String(decoding: literal[attributeStart...], as: UTF8.self)
        literal.removeSubrange(attributeStart...)
        flush()
        append(.url(prefix: prefix, name: name, quote: String(decoding: [quote], as: UTF8.self)))
        scanner.read(quote)
        index += 1
    }

    // MARK: Names

    private func kind(of name: String, at start: Int) throws(TemplateError) -> TemplateSchema.Kind {
        guard let kind = sections.reversed().lazy.compactMap({ $0.schema?.names[name] }).first else {
            let names = sections.compactMap(\.schema?.names.keys).joined().sorted().joined(separator: ", ")
            throw error(.templateUnknownName, "there is no '\(name)' here; there are: \(names)", at: start)
        }
        return kind
    }

    /// A sentence; those with values of their own are in the values of pages.
    private func word(_ name: String, at start: Int) throws(TemplateError) -> WordKey {
        guard let key = WordKey(rawValue: String(name.dropFirst(5))), !Words(.english)(key).contains("{") else {
            throw error(.templateUnknownName, "there is no sentence '\(name)'", at: start)
        }
        return key
    }

    private func error(_ code: ErrorCode, _ message: String, at offset: Int) -> TemplateError {
        let before = bytes.prefix(offset)
        let lineStart = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        let position = TemplateError.Position(
            line: before.count { $0 == 0x0A } + 1, column: before[lineStart...].count { $0 & 0xC0 != 0x80 } + 1)
        return TemplateError(code: code, message: message, file: file, position: position)
    }

    /// Whether the attributes of a form's tag say so.
    private static func posts(_ tag: ArraySlice<UInt8>) -> Bool {
        let words = tag.split { byte in
            byte <= 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") || byte == UInt8(ascii: "=")
                || byte == UInt8(ascii: ">") || byte == UInt8(ascii: "/")
        }.map { String(decoding: $0, as: UTF8.self).lowercased() }
        return zip(words, words.dropFirst()).contains { $0 == "method" && $1 == "post" }
    }

    private static func invalidOffset(_ bytes: [UInt8]) -> Int? {
        let decoded = String(decoding: bytes, as: UTF8.self).utf8
        if decoded.count == bytes.count, decoded.elementsEqual(bytes) { return nil }
        return zip(decoded, bytes).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? bytes.count
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte | 0x20) && byte >= 0x41 || (0x30...0x39).contains(byte) || byte == 0x5F
            || byte == 0x2E
    }

    private static func trimmed(_ text: Substring) -> String {
        let start = text.drop { $0 == " " }
        return start.lastIndex { $0 != " " }.map { String(start[...$0]) } ?? ""
    }
}

private import MartletCore

/// Expands `${VAR}` and `${VAR:-default}` in scalars; `$${` is a literal `${`.
///
/// A value is inserted as text: it is not expanded again and cannot change the document's structure.
struct VariableExpansion {
    /// The maximum number of bytes that variables may add to a file.
    static let budget = 1_048_576

    let environment: (String) -> String?
    /// The positions of scalars with unresolved variables.
    private(set) var unresolvedScalars: Set<SourceLocation> = []
    private var added = 0

    init(environment: @escaping (String) -> String?) { self.environment = environment }

    /// The scalar with its variables expanded; errors are recorded.
    ///
    /// - Parameter isVerbatim: whether the file has the scalar's text verbatim on one line, so that columns in it are
    ///   known.
    /// - Throws: `config.too_large` if variables add more text than ``budget``.
    mutating func expand(
        _ scalar: ConfigurationNode.Scalar, at location: SourceLocation, isVerbatim: Bool,
        into diagnostics: inout Diagnostics
    ) throws(ConfigurationError) -> ConfigurationNode.Scalar {
        var rest = Array(scalar.text.utf8)[...]
        guard rest.contains(0x24) else { return scalar }
        var result: [UInt8] = []
        var hadVariable = false
        var column = location.column
        while !rest.isEmpty {
            let part: ArraySlice<UInt8>
            if rest.starts(with: "$${".utf8) {
                part = rest.prefix(3)
                result += "${".utf8
            } else if rest.starts(with: "${".utf8) {
                hadVariable = true
                let position = SourceLocation(
                    file: location.file, line: location.line, column: isVerbatim ? column : location.column)
                let (value, length) = replacement(for: rest, at: position, into: &diagnostics)
                part = rest.prefix(length)
                if value == nil { unresolvedScalars.insert(location) }
                try add(value ?? [], to: &result, at: location)
            } else {
                part = rest.prefix(1)
                result += part
            }
            column += part.count { $0 & 0xC0 != 0x80 }
            rest = rest.dropFirst(part.count)
        }
        return .init(String(decoding: result, as: UTF8.self), isPlain: scalar.isPlain, hadVariable: hadVariable)
    }

    private mutating func add(
        _ value: [UInt8], to result: inout [UInt8], at location: SourceLocation
    ) throws(ConfigurationError) {
        added += value.count
        guard added <= Self.budget else {
            throw ConfigurationError(
                .configTooLarge, at: location, "variables expand to too much text")
        }
        result += value
    }

    /// The value of the variable reference at the start of a text, and the length of the reference in bytes.
    private func replacement(
        for text: ArraySlice<UInt8>, at location: SourceLocation, into diagnostics: inout Diagnostics
    ) -> (value: [UInt8]?, length: Int) {
        let body = text.dropFirst(2)
        guard let end = body.firstIndex(of: 0x7D) else {
            diagnostics.error(
                .configBadVariable, at: location, "'${' has no closing '}' (write '$${' for a literal '${')")
            return (nil, text.count)
        }
        let inside = body[..<end]
        let length = end - text.startIndex + 1
        let name = inside.prefix(while: Self.isNameByte)
        let tail = inside.dropFirst(name.count)
        guard let first = name.first, !(0x30...0x39).contains(first), tail.isEmpty || tail.starts(with: ":-".utf8)
        else {
            let shown = quoted(String(decoding: text.prefix(length), as: UTF8.self))
            diagnostics.error(
                .configBadVariable, at: location,
                "\(shown) is neither ${NAME} nor ${NAME:-default} (write '$${' for a literal '${')")
            return (nil, length)
        }
        let key = String(decoding: name, as: UTF8.self)
        let value = environment(key)
        if let value, !(value.isEmpty && !tail.isEmpty) { return (Array(value.utf8), length) }
        guard tail.isEmpty else { return (Array(tail.dropFirst(2)), length) }
        diagnostics.error(
            .configUnsetVariable, at: location, "environment variable \(quoted(key)) is not set and has no default")
        return (nil, length)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
        default: false
        }
    }
}

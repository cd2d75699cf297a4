private import MartletCore

/// Replaces `${VAR}` and `${VAR:-default}` in scalars; `$${` stands for a literal `${`.
///
/// What comes in is text: it is not expanded again and cannot change the document's structure.
struct VariableExpansion {
    /// The most text that variables may add to one file.
    static let budget = 1_048_576

    let environment: (String) -> String?
    /// Where scalars stand whose variables could not be replaced.
    private(set) var brokenScalars: Set<SourceLocation> = []
    private var added = 0

    init(environment: @escaping (String) -> String?) { self.environment = environment }

    /// The scalar with its variables replaced; what cannot be replaced is recorded.
    ///
    /// - Parameter isVerbatim: the scalar's text stands in the file as it is, on one line, so that places in it are known.
    /// - Throws: `config.too_large` when variables add more text than a configuration can need.
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
            let piece: ArraySlice<UInt8>
            if rest.starts(with: "$${".utf8) {
                piece = rest.prefix(3)
                result += "${".utf8
            } else if rest.starts(with: "${".utf8) {
                hadVariable = true
                let place = SourceLocation(
                    file: location.file, line: location.line, column: isVerbatim ? column : location.column)
                let (value, length) = replacement(for: rest, at: place, into: &diagnostics)
                piece = rest.prefix(length)
                if value == nil { brokenScalars.insert(location) }
                try add(value ?? [], to: &result, at: location)
            } else {
                piece = rest.prefix(1)
                result += piece
            }
            column += piece.count { $0 & 0xC0 != 0x80 }
            rest = rest.dropFirst(piece.count)
        }
        return .init(String(decoding: result, as: UTF8.self), isPlain: scalar.isPlain, hadVariable: hadVariable)
    }

    private mutating func add(
        _ value: [UInt8], to result: inout [UInt8], at location: SourceLocation
    ) throws(ConfigurationError) {
        added += value.count
        guard added <= Self.budget else {
            throw ConfigurationError(
                .configTooLarge, at: location, "variables expand to more than a configuration can need")
        }
        result += value
    }

    /// What a text that begins with `${` stands for, and how long the reference is.
    private func replacement(
        for text: ArraySlice<UInt8>, at location: SourceLocation, into diagnostics: inout Diagnostics
    ) -> (value: [UInt8]?, length: Int) {
        let body = text.dropFirst(2)
        guard let end = body.firstIndex(of: 0x7D) else {
            diagnostics.error(.configBadVariable, at: location, "'${' has no '}' behind it (a literal one is '$${')")
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
                "\(shown) is neither ${NAME} nor ${NAME:-default} (a literal '${' is '$${')")
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

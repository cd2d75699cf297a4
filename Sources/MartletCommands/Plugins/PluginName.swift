/// The name of a plugin's type, and what is derived from it.
struct PluginName: Equatable {
    /// Such as `Line`: the package and its module.
    let type: String
    /// Such as `line` or `partner_key`: the `kind:` in the configuration.
    let kind: String

    /// Words that would not be a module's name.
    private static let reserved: Set = ["Any", "Self", "Type", "Protocol", "Swift", "Testing", "PackageDescription"]

    /// - Parameter kind: the `kind:`; the name in snake case where it is `nil`.
    /// - Returns: `nil` unless the text is the name of a Swift type: ASCII letters and digits, first an uppercase letter;
    ///   and the kind lowercase letters, digits and underscores, first a letter.
    init?(_ text: String, kind chosen: String? = nil) {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, (0x41...0x5A).contains(first), bytes.count <= 60,
            bytes.allSatisfy({ Self.isLetter($0) || (0x30...0x39).contains($0) }), !Self.reserved.contains(text),
            !text.hasPrefix("Martlet")
        else { return nil }
        type = text
        kind = chosen ?? Self.snakeCase(bytes)
        guard kind.utf8.count <= 60, kind.utf8.first.map({ (0x61...0x7A).contains($0) }) == true,
            kind.utf8.allSatisfy({ (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F })
        else { return nil }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) }

    private static func snakeCase(_ bytes: [UInt8]) -> String {
        var result: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            let isUpper = (0x41...0x5A).contains(byte)
            if isUpper, index > 0 {
                let afterLower = !(0x41...0x5A).contains(bytes[index - 1])
                let beforeLower = index + 1 < bytes.count && (0x61...0x7A).contains(bytes[index + 1])
                if afterLower || beforeLower { result.append(0x5F) }
            }
            result.append(isUpper ? byte | 0x20 : byte)
        }
        return String(decoding: result, as: UTF8.self)
    }
}

/// The value of `Accept-Language` (RFC 9110 §12.5.4), read to a limit; entries that are not valid are skipped.
struct AcceptLanguage {
    /// Browsers send a few entries. What is beyond is not read.
    static let maximumBytes = 1024
    static let maximumEntries = 32

    /// The ranges with their weights in thousandths, in the order of the field.
    private let ranges: [(range: Substring, weight: Int)]

    init(_ value: String) {
        let text = String(decoding: value.utf8.prefix(Self.maximumBytes), as: UTF8.self)
        ranges = text.split(separator: ",").prefix(Self.maximumEntries).compactMap(Self.entry)
    }

    /// The language with the highest weight, the first one of several; `nil` if there is none of ours.
    ///
    /// `*` means the language `standard`, unless the field has an entry for that.
    func preferred(standard: PageLanguage) -> PageLanguage? {
        var best: (language: PageLanguage, weight: Int)?
        let named = ranges.map { PageLanguage(tag: String($0.range)) }
        for ((range, weight), language) in zip(ranges, named) where weight > 0 {
            let isAny = range == "*" && !named.contains(standard)
            guard let language = isAny ? standard : language, weight > best?.weight ?? 0 else { continue }
            best = (language, weight)
        }
        return best?.language
    }

    private static func entry(_ text: Substring) -> (range: Substring, weight: Int)? {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map(trimmed)
        guard let range = parts.first, !range.isEmpty, parts.count <= 2 else { return nil }
        guard parts.count == 2 else { return (range, 1000) }
        return weight(parts[1]).map { (range, $0) }
    }

    /// `q=0.8` in thousandths (RFC 9110 §12.4.2).
    private static func weight(_ text: Substring) -> Int? {
        guard text.lowercased().hasPrefix("q=") else { return nil }
        let digits = Array(text.utf8.dropFirst(2))
        guard let first = digits.first, digits.count <= 5, digits.count == 1 || digits[1] == UInt8(ascii: "."),
            first == UInt8(ascii: "0") || first == UInt8(ascii: "1"),
            digits.dropFirst(2).allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        var weight = Int(first - 0x30)
        for index in 2..<5 { weight = weight * 10 + (index < digits.count ? Int(digits[index] - 0x30) : 0) }
        return weight <= 1000 ? weight : nil
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop { $0 == " " || $0 == "\t" }
        return start.lastIndex { $0 != " " && $0 != "\t" }.map { start[...$0] } ?? ""
    }
}

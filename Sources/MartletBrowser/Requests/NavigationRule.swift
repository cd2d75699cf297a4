package import MartletHTTP

/// Whether a request loads a page into a browser's window, so that a redirect to another page is useful.
package enum NavigationRule {
    /// Whether a request with this head is a navigation: GET with `Sec-Fetch-Mode: navigate`, or from a browser without
    /// that field one whose `Accept` prefers HTML.
    package static func isNavigation(
        _ bytes: Span<UInt8>, _ fields: borrowing FieldList, method: Method
    ) -> Bool {
        guard method == .get else { return false }
        // Every request of a gateway with pages passes here: one pass over the fields, by their lengths first.
        var mode: ByteRange?
        var accepts = false
        var index = 0
        while index < fields.count {
            let field = fields[index]
            index &+= 1
            guard field.known == .other else { continue }
            switch field.name.count {
            case modeLength where field.isNamed("sec-fetch-mode", in: bytes):
                guard mode == nil else { return false }
                mode = field.value
            // A shorter list does not have HTML: that of a program is `*/*`.
            case acceptLength where field.value.count >= typeLength && field.isNamed("accept", in: bytes):
                accepts = true
            default: break
            }
        }
        if let mode { return bytes.extracting(mode.bounds).spells("navigate") }
        return accepts && prefersHTML(bytes, fields)
    }

    private static let modeLength = 14
    private static let acceptLength = 6
    /// That of `text/html`.
    private static let typeLength = 9

    private static func prefersHTML(_ bytes: Span<UInt8>, _ fields: borrowing FieldList) -> Bool {
        var preference = AcceptPreference()
        var index = 0
        while index < fields.count {
            let field = fields[index]
            index &+= 1
            if field.isNamed("accept", in: bytes) { preference.add(bytes.extracting(field.value.bounds)) }
        }
        return preference.isHTML
    }

    /// Whether a browser says what a request is for: scripts cannot set the field.
    package static func hasMode(_ bytes: Span<UInt8>, _ fields: borrowing FieldList) -> Bool {
        fields.occurrence(of: "sec-fetch-mode", in: bytes) != .absent
    }

    /// Whether a request to one of the gateway's own endpoints is a navigation. Forms are, too: their response is a
    /// page.
    package static func isNavigation(
        method: String, fields: [(name: String, value: String)], isForm: Bool = false
    ) -> Bool {
        guard method.utf8.elementsEqual("GET".utf8) || (isForm && method.utf8.elementsEqual("POST".utf8)) else {
            return false
        }
        let modes = fields.filter { $0.name.lowercased() == "sec-fetch-mode" }.map(\.value)
        if let mode = modes.first { return modes.count == 1 && mode.utf8.elementsEqual("navigate".utf8) }
        var preference = AcceptPreference()
        for field in fields where field.name.lowercased() == "accept" { preference.add(Array(field.value.utf8).span) }
        return preference.isHTML
    }
}

/// Which media type the `Accept` fields of a request prefer (RFC 9110 §12.5.1): the one with the highest weight, of
/// several the first.
struct AcceptPreference {
    private var best = 0
    /// Whether the preferred type is HTML. `*/*` alone is a program's.
    private(set) var isHTML = false

    /// Adds the value of one field; an element with a malformed weight is skipped.
    mutating func add(_ value: Span<UInt8>) {
        var start = 0
        while start < value.count {
            var end = start
            while end < value.count, value[end] != UInt8(ascii: ",") { end &+= 1 }
            addElement(value.extracting(start..<end))
            start = end &+ 1
        }
    }

    private mutating func addElement(_ element: Span<UInt8>) {
        var end = 0
        while end < element.count, element[end] != UInt8(ascii: ";") { end &+= 1 }
        let type = Self.trimmed(element, from: 0, to: end)
        guard !type.isEmpty, let weight = Self.weight(element, from: end), weight > best else { return }
        best = weight
        let name = element.extracting(type)
        isHTML = name.spellsIgnoringCase("text/html") || name.spellsIgnoringCase("application/xhtml+xml")
    }

    /// The weight among the parameters in thousandths; 1000 without one, `nil` for one that is malformed.
    private static func weight(_ element: Span<UInt8>, from start: Int) -> Int? {
        var index = start
        while index < element.count {
            var end = index &+ 1
            while end < element.count, element[end] != UInt8(ascii: ";") { end &+= 1 }
            let parameter = trimmed(element, from: index &+ 1, to: end)
            if parameter.count >= 2, element[parameter.lowerBound] | 0x20 == UInt8(ascii: "q"),
                element[parameter.lowerBound &+ 1] == UInt8(ascii: "=")
            {
                return thousandths(element, parameter.lowerBound &+ 2, parameter.upperBound)
            }
            index = end
        }
        return 1000
    }

    /// RFC 9110 §12.4.2 `qvalue`: 0 to 1 with at most three decimals.
    private static func thousandths(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Int? {
        guard start < end, end &- start <= 5, bytes[start] == 0x30 || bytes[start] == 0x31 else { return nil }
        var value = Int(bytes[start] &- 0x30) &* 1000
        var unit = 100
        var index = start &+ 1
        if index < end {
            guard bytes[index] == UInt8(ascii: ".") else { return nil }
            index &+= 1
        }
        while index < end {
            guard (0x30...0x39).contains(bytes[index]) else { return nil }
            value &+= Int(bytes[index] &- 0x30) &* unit
            unit /= 10
            index &+= 1
        }
        return value <= 1000 ? value : nil
    }

    private static func trimmed(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> Range<Int> {
        var (low, high) = (min(start, end), end)
        while low < high, bytes[low] == 0x20 || bytes[low] == 0x09 { low &+= 1 }
        while high > low, bytes[high &- 1] == 0x20 || bytes[high &- 1] == 0x09 { high &-= 1 }
        return low..<high
    }
}

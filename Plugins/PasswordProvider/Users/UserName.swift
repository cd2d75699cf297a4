private import MartletCrypto

/// The rules for names of users in the account store (RFC 8265 §3.3, and stricter).
///
/// Names that differ only in case, width or compatibility forms are the same name or invalid: a name is folded, and
/// characters that would still change under folding are rejected. So folding is idempotent, and every name has exactly
/// one canonical form.
package enum UserName {
    /// The longest name, in bytes of UTF-8.
    static let maximumBytes = 255

    /// The form under which a name is stored, looked up and throttled; `nil` for an invalid name.
    ///
    /// White space around it is not a part of it: keyboards add it.
    package static func canonical(_ text: String) -> String? {
        let name = trimmed(text)
        guard (1...maximumBytes).contains(name.utf8.count) else { return nil }
        var folded = String.UnicodeScalarView()
        for scalar in name.composed.unicodeScalars {
            guard let fold = fold(scalar) else { return nil }
            folded.append(contentsOf: fold.unicodeScalars)
        }
        let key = String(folded).composed
        guard key.unicodeScalars.allSatisfy(isAllowed), !beginsWithMark(key), !hasLooseSpace(key),
            key.utf8.count <= maximumBytes
        else { return nil }
        return key
    }

    private static func trimmed(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let first = scalars.firstIndex(where: { !$0.properties.isWhitespace }),
            let last = scalars.lastIndex(where: { !$0.properties.isWhitespace })
        else { return "" }
        return String(scalars[first...last])
    }

    /// One character without its case and width; `nil` if there is no stable form.
    private static func fold(_ scalar: Unicode.Scalar) -> String? {
        let narrow = narrowed(scalar)
        if isStable(narrow) { return String(narrow) }
        let (lower, upper) = (narrow.properties.lowercaseMapping, narrow.properties.uppercaseMapping)
        // Where case folding differs from lower case, it goes through upper case: ß, ς; Cherokee folds to upper case.
        let forms = [lower, upper, upper.lowercased(), lower.uppercased().lowercased()]
        guard let form = forms.first(where: { $0.unicodeScalars.allSatisfy(isStable) }) else { return nil }
        // An iota subscript folds to a letter after any marks in between, which would give one name two forms.
        return form.unicodeScalars.last == iota && narrow != capitalIota ? nil : form
    }

    private static let iota: Unicode.Scalar = "\u{3B9}"
    private static let capitalIota: Unicode.Scalar = "\u{399}"

    /// Maps full-width ASCII and the ideographic space to ASCII.
    private static func narrowed(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0xFF01...0xFF5E: Unicode.Scalar(scalar.value &- 0xFEE0) ?? scalar
        case 0x3000: " "
        default: scalar
        }
    }

    /// Whether case folding and compatibility mapping leave a character unchanged; invisible characters do change.
    private static func isStable(_ scalar: Unicode.Scalar) -> Bool { !scalar.properties.changesWhenNFKCCaseFolded }

    private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
        guard isStable(scalar) else { return false }
        // A colon ends the name in Basic and in htpasswd files.
        if scalar.isASCII { return (0x20...0x7E).contains(scalar.value) && scalar != ":" }
        return switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .otherLetter, .modifierLetter, .nonspacingMark, .spacingMark,
            .decimalNumber:
            true
        default: false
        }
    }

    private static func beginsWithMark(_ key: String) -> Bool {
        switch key.unicodeScalars.first?.properties.generalCategory {
        case .nonspacingMark, .spacingMark: true
        default: false
        }
    }

    private static func hasLooseSpace(_ key: String) -> Bool {
        key.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).contains { $0.isEmpty }
    }
}

private import MartletCrypto

/// The rules for names of users in the account store (RFC 8265 §3.3, and stricter).
///
/// Two names that look or sort alike by case, width or compatibility are one name or none: a name is folded, and what
/// would still fold to something else afterwards is refused. So the canonical form is its own canonical form, and no
/// name has two.
package enum UserName {
    /// The longest name, in bytes of UTF-8.
    static let maximumBytes = 255

    /// The form that a name is filed, looked up and throttled under; `nil` for a name that no user can have.
    package static func canonical(_ name: String) -> String? {
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

    /// One character without its case and width; `nil` if it has no such form.
    private static func fold(_ scalar: Unicode.Scalar) -> String? {
        let narrow = narrowed(scalar)
        if isStable(narrow) { return String(narrow) }
        let (lower, upper) = (narrow.properties.lowercaseMapping, narrow.properties.uppercaseMapping)
        // Where lower case is not what case folding comes to, it is by way of upper case: ß, ς; Cherokee folds upwards.
        let forms = [lower, upper, upper.lowercased(), lower.uppercased().lowercased()]
        guard let form = forms.first(where: { $0.unicodeScalars.allSatisfy(isStable) }) else { return nil }
        // The iota below a Greek letter folds to a letter, past the marks between: to different texts for one name.
        return form.unicodeScalars.last == iota && narrow != capitalIota ? nil : form
    }

    private static let iota: Unicode.Scalar = "\u{3B9}"
    private static let capitalIota: Unicode.Scalar = "\u{399}"

    /// Full-width forms of ASCII, and the ideographic space, as what they are forms of.
    private static func narrowed(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.value {
        case 0xFF01...0xFF5E: Unicode.Scalar(scalar.value &- 0xFEE0) ?? scalar
        case 0x3000: " "
        default: scalar
        }
    }

    /// Whether neither case folding nor compatibility turns a character into another; what is invisible does turn.
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

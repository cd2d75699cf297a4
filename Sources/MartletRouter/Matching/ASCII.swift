/// Character classes of RFC 3986 and RFC 9110.
extension UInt8 {
    static let slash = UInt8(ascii: "/")
    static let percent = UInt8(ascii: "%")
    static let dot = UInt8(ascii: ".")
    static let colon = UInt8(ascii: ":")
    static let star = UInt8(ascii: "*")
    static let space = UInt8(ascii: " ")

    var isDigit: Bool { self &- 0x30 < 10 }
    var isLetter: Bool { (self | 0x20) &- 0x61 < 26 }

    /// RFC 3986 §2.3.
    var isUnreserved: Bool {
        isLetter || isDigit || self == 0x2D || self == 0x2E || self == 0x5F || self == 0x7E
    }

    /// RFC 9110 §5.6.2 `tchar`.
    var isTokenCharacter: Bool {
        if isLetter || isDigit { return true }
        switch self {
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: return true
        default: return false
        }
    }

    /// 0x20 to 0x7E.
    var isPrintable: Bool { self &- 0x20 < 0x5F }

    /// The byte with A–Z mapped to a–z.
    var lowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    /// The value of a hexadecimal digit.
    var hexadecimalValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }

    /// The upper-case hexadecimal digit of the low four bits.
    var hexadecimalDigit: UInt8 {
        let low = self & 15
        return low < 10 ? low &+ 0x30 : low &+ 0x37
    }
}

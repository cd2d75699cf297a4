private import Glibc

/// An opaque sRGB color, as CSS writes it in hexadecimal digits.
package struct RGBColor: Sendable, Equatable {
    package let red: UInt8
    package let green: UInt8
    package let blue: UInt8

    package static let black = RGBColor(0x000000)
    package static let white = RGBColor(0xFFFFFF)

    /// - Parameter number: `0xRRGGBB`.
    package init(_ number: UInt32) {
        red = UInt8(truncatingIfNeeded: number >> 16)
        green = UInt8(truncatingIfNeeded: number >> 8)
        blue = UInt8(truncatingIfNeeded: number)
    }

    /// `#rgb` or `#rrggbb`; `nil` for anything else.
    package init?(_ text: String) {
        guard text.utf8.first == UInt8(ascii: "#") else { return nil }
        let digits = text.utf8.dropFirst().compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == text.utf8.count - 1, digits.count == 3 || digits.count == 6 else { return nil }
        let pairs = digits.count == 3 ? digits.flatMap { [$0, $0] } : digits
        self.init(pairs.reduce(0) { $0 << 4 | UInt32($1) })
    }

    /// `#rrggbb`.
    package var css: String {
        let number = UInt32(red) << 16 | UInt32(green) << 8 | UInt32(blue)
        let digits = String(number, radix: 16)
        return "#" + String(repeating: "0", count: max(6 - digits.utf8.count, 0)) + digits
    }

    /// The relative luminance (WCAG 2.2), 0 to 1.
    package var luminance: Double {
        func linear(_ channel: UInt8) -> Double {
            let value = Double(channel) / 255
            return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    /// The contrast ratio (WCAG 2.2), 1 to 21.
    package func contrast(with other: RGBColor) -> Double {
        let (light, dark) = (max(luminance, other.luminance), min(luminance, other.luminance))
        return (light + 0.05) / (dark + 0.05)
    }

    /// This color with a part of another one, 0 to 1.
    package func mixed(with other: RGBColor, part: Double) -> RGBColor {
        func channel(_ own: UInt8, _ other: UInt8) -> UInt32 {
            UInt32(min(max((Double(own) + (Double(other) - Double(own)) * part).rounded(), 0), 255))
        }
        return RGBColor(channel(red, other.red) << 16 | channel(green, other.green) << 8 | channel(blue, other.blue))
    }
}

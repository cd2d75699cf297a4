internal import MartletCore

/// The text of a network address, stored inline: every request's log line and headers use it, without reference
/// counting.
package struct AddressText: Sendable {
    /// The longest address is an IPv6 one with an IPv4 address at its end: 45 characters (RFC 4291 §2.2).
    package static let capacity = 48

    package private(set) var letters = InlineArray<48, UInt8>(repeating: 0)
    package private(set) var count = 0

    package init() {}

    /// The first ``capacity`` bytes of a text.
    package init(_ text: some Sequence<UInt8>) {
        for letter in text.prefix(AddressText.capacity) {
            letters[count] = letter
            count += 1
        }
    }

    package var array: [UInt8] { (0..<count).map { letters[$0] } }

    package var description: String { String(decoding: array, as: UTF8.self) }

    /// Whether it is an IPv6 address.
    package var isV6: Bool { array.contains(UInt8(ascii: ":")) }
}

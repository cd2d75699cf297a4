internal import MartletCore

/// The text of a network address, stored inline: every request's log line and headers use it, without reference
/// counting.
struct AddressText: Sendable {
    /// The longest address is an IPv6 one with an IPv4 address at its end: 45 characters (RFC 4291 §2.2).
    static let capacity = 48

    fileprivate var letters = InlineArray<48, UInt8>(repeating: 0)
    private(set) var count = 0

    init() {}

    /// The first ``capacity`` bytes of a text.
    init(_ text: some Sequence<UInt8>) {
        for letter in text.prefix(AddressText.capacity) {
            letters[count] = letter
            count += 1
        }
    }

    var array: [UInt8] { (0..<count).map { letters[$0] } }

    var description: String { String(decoding: array, as: UTF8.self) }

    /// Whether it is an IPv6 address.
    var isV6: Bool { array.contains(UInt8(ascii: ":")) }
}

extension ByteBuffer {
    /// Appends the text of an address.
    @inline(__always)
    mutating func append(_ address: AddressText) {
        let letters = address.letters.span
        unsafe letters.withUnsafeBufferPointer { letters in
            unsafe append(UnsafeBufferPointer(rebasing: letters[..<address.count]))
        }
    }
}

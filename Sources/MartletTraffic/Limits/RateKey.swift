internal import MartletCore

/// The hash of what a limit counts by.
///
/// The hash is keyed by a seed of the process, so that clients cannot look for keys that share a bucket.
package struct RateKey: Sendable, Hashable {
    /// Never 0.
    let word: Int64

    fileprivate init(word: Int64) { self.word = word == 0 ? 1 : word }

    /// The first of the two groups where its bucket may be.
    @inline(__always)
    func firstGroup(of count: UInt64) -> UInt64 { UInt64(bitPattern: word).multipliedFullWidth(by: count).high }

    @inline(__always)
    func secondGroup(of count: UInt64) -> UInt64 {
        let mixed = (UInt64(bitPattern: word) &* 0x9E37_79B9_7F4A_7C15) ^ UInt64(bitPattern: word) &>> 29
        return (mixed &* 0xD6E8_FEB8_6659_FD93).multipliedFullWidth(by: count).high
    }

    /// The hash of one text, for the parts of a key that do not change from request to request.
    package static func hash(_ text: String) -> Int {
        var text = text
        return text.withUTF8 { bytes in
            var builder = RateKeyBuilder()
            unsafe builder.add(bytes)
            return Int(truncatingIfNeeded: builder.build().word)
        }
    }
}

/// What is built from the parts of a key, in order.
package protocol LimitKeyBuilding {
    /// Adds a part that the request does not have: all such requests share a bucket.
    mutating func addMissing()

    /// Adds a hash that is the same in every process.
    mutating func add(hash: Int)

    /// Adds the bytes of a part.
    mutating func add(_ bytes: UnsafeBufferPointer<UInt8>)

    /// Adds a host: its name in lower case, without a port and a final dot.
    mutating func add(host bytes: UnsafeBufferPointer<UInt8>)

    /// Adds a client's address: 16 bytes in network order, of which a /64 counts unless they are an IPv4 address.
    /// Anything else is missing.
    mutating func add(address bytes: Span<UInt8>)
}

extension LimitKeyBuilding {
    /// Adds a client's address.
    package mutating func add(address bytes: Span<UInt8>) {
        guard bytes.count == 16 else { return addMissing() }
        let words = unsafe (
            bytes.bytes.unsafeLoadUnaligned(as: UInt64.self).bigEndian,
            bytes.bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt64.self).bigEndian
        )
        guard words != (0, 0) else { return addMissing() }
        let isMapped = words.0 == 0 && words.1 >> 32 == 0xFFFF
        unsafe bytes.extracting(isMapped ? 12..<16 : 0..<8).withUnsafeBufferPointer { unsafe add($0) }
    }
}

/// Builds the key of a bucket in this process.
package struct RateKeyBuilder: LimitKeyBuilding {
    /// Of each process.
    private static let seeds = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    // What kind of part a word is: parts of different kinds are never equal.
    private static var missing: UInt64 { 0x9E37_79B9_7F4A_7C15 }
    private static var hash: UInt64 { 0xA076_1D64_78BD_642F }
    private static var count: UInt64 { 0x8EBC_6AF0_9C88_C6E3 }
    private static var text: UInt64 { 0x5895_50B7_66B2_8C8F }

    private var state: UInt64
    private let key: UInt64

    package init() { (state, key) = Self.seeds }

    @inline(__always)
    private mutating func mix(_ word: UInt64, _ kind: UInt64) { state = KeyedHash.fold(state ^ word, key ^ kind) }

    /// Adds a part that the request does not have.
    @inline(__always)
    package mutating func addMissing() { mix(0, Self.missing) }

    /// Adds a hash.
    @inline(__always)
    package mutating func add(hash: Int) { mix(UInt64(bitPattern: Int64(hash)), Self.hash) }

    /// Adds the bytes of a part.
    package mutating func add(_ bytes: UnsafeBufferPointer<UInt8>) {
        // The count first, so that parts cannot be shifted into each other.
        mix(UInt64(truncatingIfNeeded: bytes.count), Self.count)
        guard let base = unsafe UnsafeRawPointer(bytes.baseAddress) else { return }
        var index = 0
        while index &+ 8 <= bytes.count {
            unsafe mix(base.loadUnaligned(fromByteOffset: index, as: UInt64.self), Self.text)
            index &+= 8
        }
        let left = bytes.count &- index
        guard left > 0 else { return }
        var word: UInt64 = 0
        if left >= 4 {
            word = UInt64(unsafe base.loadUnaligned(fromByteOffset: index, as: UInt32.self)) &<< 32
            index = bytes.count &- 4
            word |= UInt64(unsafe base.loadUnaligned(fromByteOffset: index, as: UInt32.self))
        } else {
            while index < bytes.count {
                word = word &<< 8 | UInt64(unsafe bytes[index])
                index &+= 1
            }
        }
        mix(word, Self.text)
    }

    /// Adds a host.
    package mutating func add(host bytes: UnsafeBufferPointer<UInt8>) {
        let end = unsafe length(ofHost: bytes)
        guard end > 0 else { return addMissing() }
        mix(UInt64(truncatingIfNeeded: end), Self.count)
        for index in 0..<end { mix(UInt64(unsafe lowercase(bytes[index])), Self.text) }
    }

    /// The key of all parts.
    @inline(__always)
    package func build() -> RateKey {
        RateKey(word: Int64(bitPattern: KeyedHash.fold(state, key ^ KeyedHash.last)))
    }
}

/// Builds the name of a bucket in the store: the same bytes in every process, and others for every other key.
package struct StoreKeyBuilder: LimitKeyBuilding {
    private static let (missing, hash, text): (UInt8, UInt8, UInt8) = (0, 1, 2)

    /// The limit's name and the parts.
    package private(set) var bytes: [UInt8] = []

    /// - Parameter limit: the limit's name.
    package init(_ limit: [UInt8]) { add(text: limit) }

    /// Adds a part that the request does not have.
    package mutating func addMissing() { bytes.append(Self.missing) }

    /// Adds a hash.
    package mutating func add(hash: Int) {
        bytes.append(Self.hash)
        for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: hash >> shift)) }
    }

    /// Adds the bytes of a part.
    package mutating func add(_ bytes: UnsafeBufferPointer<UInt8>) { unsafe add(text: bytes) }

    /// Adds a host.
    package mutating func add(host bytes: UnsafeBufferPointer<UInt8>) {
        let end = unsafe length(ofHost: bytes)
        guard end > 0 else { return addMissing() }
        unsafe add(text: bytes[..<end].map(lowercase))
    }

    private mutating func add(text: some Collection<UInt8>) {
        bytes.append(Self.text)
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: text.count >> shift)) }
        bytes += text
    }
}

private let longestHost = 256

/// The length of the host's name in `Host`.
private func length(ofHost bytes: UnsafeBufferPointer<UInt8>) -> Int {
    var end = bytes.count
    if let colon = unsafe bytes.lastIndex(of: UInt8(ascii: ":")),
        unsafe bytes[colon...].dropFirst().allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
    {
        end = colon
    }
    if end > 0, unsafe bytes[end - 1] == UInt8(ascii: ".") { end -= 1 }
    return min(end, longestHost)
}

@inline(__always)
private func lowercase(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

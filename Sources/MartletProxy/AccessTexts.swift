internal import MartletCore

/// What access records have in common, by numbers: records of one key differ in their first and last texts only.
struct AccessKey: Equatable {
    private let place: UInt64
    private let outcome: UInt64
    private let source: UInt64

    /// - Parameter epoch: of the configuration that the provider's number belongs to.
    init(route: Int32, endpoint: Int32, status: Int, reason: Int32, provider: Int32, epoch: Int) {
        place = AccessKey.pair(route, endpoint)
        outcome = AccessKey.pair(Int32(truncatingIfNeeded: status), reason)
        source = AccessKey.pair(provider, Int32(truncatingIfNeeded: epoch))
        self.status = status
    }

    let status: Int

    @inline(__always)
    private static func pair(_ low: Int32, _ high: Int32) -> UInt64 {
        UInt64(UInt32(bitPattern: low)) | UInt64(UInt32(bitPattern: high)) << 32
    }

    @inline(__always)
    static func == (left: AccessKey, right: AccessKey) -> Bool {
        (left.place ^ right.place) | (left.outcome ^ right.outcome) | (left.source ^ right.source) == 0
    }

    /// Where its texts stand, if they do.
    @inline(__always)
    var line: Int {
        let mixed = (place ^ outcome &* 0x9E37_79B9 ^ source) &* 0x9E37_79B9_7F4A_7C15
        return Int(truncatingIfNeeded: mixed >> 58)
    }
}

/// What an access record says of one request alone.
///
/// The texts are lent for the call that writes them.
@safe struct AccessLine: ~Copyable {
    let unixTime: Int64
    let requestID: UnsafeBufferPointer<UInt8>
    let client: AddressText
    let method: UnsafeBufferPointer<UInt8>
    let host: UnsafeBufferPointer<UInt8>
    let path: UnsafeBufferPointer<UInt8>
    let bytesIn: Int
    let bytesOut: Int
    let microseconds: Int
}

/// The texts of access records from the route to the upstream, as written: each set of them once, and copied from then on.
///
/// Sixty-four places, one for each key by its hash; a key that comes puts out the one that stands there.
@safe struct AccessTexts: ~Copyable {
    private struct Place: ~Copyable {
        var key: AccessKey?
        var text = ByteBuffer()
    }

    private static let count = 64
    private let places: UnsafeMutablePointer<Place>

    init() {
        unsafe places = .allocate(capacity: AccessTexts.count)
        for index in 0..<AccessTexts.count { unsafe (places + index).initialize(to: Place()) }
    }

    deinit {
        unsafe places.deinitialize(count: AccessTexts.count)
        unsafe places.deallocate()
    }

    /// Whether the texts of a key are here.
    @inline(__always)
    func holds(_ key: AccessKey) -> Bool { unsafe places[key.line].key == key }

    /// The texts of a key that is here; valid until another comes.
    @inline(__always)
    func text(of key: AccessKey) -> UnsafeBufferPointer<UInt8> { unsafe places[key.line].text.bytes }

    /// Writes down the texts of a key.
    mutating func keep(
        _ key: AccessKey, route: [UInt8], reason: [UInt8], member: [UInt8], provider: [UInt8], upstream: [UInt8],
        _ format: AccessFormat
    ) {
        unsafe places[key.line].key = key
        unsafe places[key.line].text.removeAll()
        unsafe AccessTexts.write(
            route: route, status: key.status, reason: reason, member: member, provider: provider, upstream: upstream,
            format, into: &places[key.line].text)
    }

    /// Writes texts from behind the path on to the first number.
    private static func write(
        route: [UInt8], status: Int, reason: [UInt8], member: [UInt8], provider: [UInt8], upstream: [UInt8],
        _ format: AccessFormat, into out: inout ByteBuffer
    ) {
        switch format {
        case .json:
            out.append("\",\"route\":\"")
            out.append(route)
            out.append("\",\"status\":")
            out.append(decimal: status)
            out.append(",\"reason\":\"")
            out.append(reason)
            if !member.isEmpty {
                out.append("\",\"member\":\"")
                out.append(member)
            }
            out.append("\",\"provider\":\"")
            out.append(provider)
            out.append("\",\"upstream\":\"")
            out.append(upstream)
            out.append("\",\"bytes_in\":")
        case .text:
            out.append(" ")
            out.append(decimal: status)
            out.append(" ")
            out.append(reason)
            if !member.isEmpty {
                out.append(" member=")
                out.append(member)
            }
            out.append(" route=")
            out.append(route)
            out.append(" upstream=")
            out.append(upstream)
            out.append(" ")
        }
    }
}

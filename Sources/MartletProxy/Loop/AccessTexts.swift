internal import MartletCore
internal import MartletDecisions

/// The indices that access records share: records with equal keys differ in their first and last texts only.
struct AccessKey: Equatable {
    private let location: UInt64
    private let outcome: UInt64
    private let source: UInt64

    /// - Parameter epoch: of the configuration that the provider's index belongs to.
    init(
        route: Int32, endpoint: Int32, status: Int, reason: Int32, provider: Int32, epoch: Int, isCheck: Bool = false
    ) {
        location = AccessKey.pair(route, endpoint)
        // No status has the bit.
        let mark: Int32 = isCheck ? 1 << 16 : 0
        outcome = AccessKey.pair(Int32(truncatingIfNeeded: status) | mark, reason)
        source = AccessKey.pair(provider, Int32(truncatingIfNeeded: epoch))
        self.status = status
        self.isCheck = isCheck
    }

    let status: Int
    let isCheck: Bool

    @inline(__always)
    private static func pair(_ low: Int32, _ high: Int32) -> UInt64 {
        UInt64(UInt32(bitPattern: low)) | UInt64(UInt32(bitPattern: high)) << 32
    }

    @inline(__always)
    static func == (left: AccessKey, right: AccessKey) -> Bool {
        (left.location ^ right.location) | (left.outcome ^ right.outcome) | (left.source ^ right.source) == 0
    }

    /// The slot of its texts.
    @inline(__always)
    var slot: Int {
        let mixed = (location ^ outcome &* 0x9E37_79B9 ^ source) &* 0x9E37_79B9_7F4A_7C15
        return Int(truncatingIfNeeded: mixed >> 58)
    }
}

/// The numbers of an access record, which are specific to one request, like its ``RequestTexts``.
struct AccessLine {
    let unixTime: Int64
    let bytesIn: Int
    let bytesOut: Int
    let microseconds: Int
}

/// A direct-mapped cache of the formatted texts from the route to the upstream: 64 slots, chosen by the key's hash; a
/// new key replaces the one in its slot.
@safe struct AccessTexts: ~Copyable {
    private struct Slot: ~Copyable {
        var key: AccessKey?
        var text = ByteBuffer()
    }

    private static let count = 64
    private let slots: UnsafeMutablePointer<Slot>

    init() {
        unsafe slots = .allocate(capacity: AccessTexts.count)
        for index in 0..<AccessTexts.count { unsafe (slots + index).initialize(to: Slot()) }
    }

    deinit {
        unsafe slots.deinitialize(count: AccessTexts.count)
        unsafe slots.deallocate()
    }

    /// Whether the texts of a key are cached.
    @inline(__always)
    func contains(_ key: AccessKey) -> Bool { unsafe slots[key.slot].key == key }

    /// The cached texts of a key; valid until another one is stored.
    @inline(__always)
    func text(of key: AccessKey) -> UnsafeBufferPointer<UInt8> { unsafe slots[key.slot].text.bytes }

    /// Formats and stores the texts of a key.
    mutating func store(
        _ key: AccessKey, route: [UInt8], reason: [UInt8], member: [UInt8], condition: [UInt8], provider: [UInt8],
        upstream: [UInt8], _ format: AccessFormat
    ) {
        unsafe slots[key.slot].key = key
        unsafe slots[key.slot].text.removeAll()
        unsafe AccessTexts.write(
            route: route, isCheck: key.isCheck, status: key.status, reason: reason, member: member,
            condition: condition, provider: provider,
            upstream: upstream, format, into: &slots[key.slot].text)
    }

    /// Writes the texts between the path and the first number.
    private static func write(
        route: [UInt8], isCheck: Bool, status: Int, reason: [UInt8], member: [UInt8], condition: [UInt8],
        provider: [UInt8],
        upstream: [UInt8], _ format: AccessFormat, into out: inout ByteBuffer
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
            if !condition.isEmpty {
                out.append("\",\"condition\":\"")
                out.append(condition)
            }
            out.append("\",\"provider\":\"")
            out.append(provider)
            out.append("\",\"upstream\":\"")
            out.append(upstream)
            out.append(isCheck ? "\",\"check\":true,\"bytes_in\":" : "\",\"bytes_in\":")
        case .text:
            out.append(" ")
            out.append(decimal: status)
            out.append(" ")
            out.append(reason)
            if !member.isEmpty {
                out.append(" member=")
                out.append(member)
            }
            if !condition.isEmpty {
                out.append(" condition=\"")
                out.append(condition)
                out.append("\"")
            }
            out.append(" route=")
            out.append(route)
            out.append(" upstream=")
            out.append(upstream)
            out.append(isCheck ? " check=true " : " ")
        }
    }
}

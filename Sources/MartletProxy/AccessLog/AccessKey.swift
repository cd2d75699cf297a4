/// The indices that access lines share: lines with equal keys differ in what is their requests' own.
struct AccessKey: Equatable {
    let route: Int32
    let endpoint: Int32
    let status: Int
    let reason: Int32
    let provider: Int32
    var isCheck = false

    /// The slot of its texts, one of 64.
    @inline(__always)
    var slot: Int {
        let position = UInt64(UInt32(bitPattern: route)) | UInt64(UInt32(bitPattern: endpoint)) << 32
        let outcome = UInt64(truncatingIfNeeded: status) ^ UInt64(UInt32(bitPattern: reason)) << 32
        let mixed = position ^ outcome &* 0x9E37_79B9 ^ UInt64(UInt32(bitPattern: provider))
        return Int(truncatingIfNeeded: (mixed &* 0x9E37_79B9_7F4A_7C15) >> 58)
    }
}

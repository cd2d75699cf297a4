internal import MartletCore
internal import MartletHTTP

/// What the upstream and its endpoint add to a head.
extension Forwarding {
    /// Sets the hash for balancing, of all values of a header (FNV-1a).
    @inline(never)
    mutating func setHash(of header: String, in head: borrowing RequestHead, _ bytes: UnsafeBufferPointer<UInt8>) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for index in 0..<head.fields.count {
            guard unsafe bytes[head.fields[index].name].elementsEqual(header.utf8, by: { $0 | 0x20 == $1 | 0x20 })
            else { continue }
            hash = unsafe bytes[head.fields[index].value].reduce(hash) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        }
        self.hash = hash
    }

    /// Fills in `Host` with the name of the endpoint, unless the head has the client's line: a reload between two
    /// attempts may have changed which one the upstream gets.
    ///
    /// - Parameter scratch: is overwritten.
    mutating func fillInHost(_ name: [UInt8], scratch: inout ByteBuffer) {
        let line = hostLine
        guard line.end > 0 else { return }
        scratch.removeAll()
        let old = unsafe head.bytes
        unsafe scratch.append(unsafe UnsafeBufferPointer(rebasing: old[..<line.start]))
        scratch.append("Host: ")
        scratch.append(name)
        scratch.append("\r\n")
        let end = scratch.count
        unsafe scratch.append(unsafe UnsafeBufferPointer(rebasing: old[line.end...]))
        hostLine = (line.start, end)
        head.removeAll()
        unsafe head.append(unsafe scratch.bytes)
    }
}

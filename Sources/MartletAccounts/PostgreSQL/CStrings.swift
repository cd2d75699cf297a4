internal import CPostgreSQL

/// C strings for the duration of a call, wiped afterwards because they include hashes and passwords.
struct CStrings: ~Copyable {
    private var storage: [UInt8] = []
    private var offsets: [Int] = []

    init(_ texts: [String]) {
        storage.reserveCapacity(texts.reduce(0) { $0 + $1.utf8.count + 1 })
        for text in texts { append(text.utf8) }
    }

    /// Appends a text without NUL.
    mutating func append(_ bytes: some Sequence<UInt8>) {
        offsets.append(storage.count)
        storage.append(contentsOf: bytes)
        storage.append(0)
    }

    var count: Int { offsets.count }

    /// Calls `body` with a null-terminated array of pointers.
    consuming func withPointers<Result>(_ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result) -> Result {
        let offsets = offsets
        return unsafe storage.withUnsafeMutableBytes { raw in
            defer { unsafe martlet_pq_wipe(raw.baseAddress, raw.count) }
            let characters = unsafe raw.bindMemory(to: CChar.self).baseAddress
            var pointers: [UnsafePointer<CChar>?] = unsafe offsets.map { offset in
                unsafe characters.map { unsafe UnsafePointer($0 + offset) }
            }
            unsafe pointers.append(nil)
            return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
        }
    }
}

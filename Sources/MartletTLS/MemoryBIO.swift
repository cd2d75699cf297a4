private import COpenSSL
internal import MartletCore

/// The memory behind OpenSSL's BIO: received bytes, borrowed for the duration of a call, and a buffer for its output.
///
/// One BIO serves both directions. OpenSSL consumes the bytes during the call and buffers at most one incomplete record
/// itself, so borrowed bytes are never copied to be read later.
@safe struct MemoryBIO: ~Copyable {
    /// The rest of the bytes lent for the current call.
    private var input: UnsafePointer<UInt8>?
    private(set) var inputCount = 0
    /// Records to be written to the socket; frees its memory when empty.
    var output = ByteBuffer()

    init() { unsafe input = nil }

    /// Lends bytes to OpenSSL until `endLoan`.
    mutating func lend(_ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe input = bytes.baseAddress
        inputCount = bytes.count
    }

    /// Ends the loan; unread bytes are discarded.
    mutating func endLoan() {
        unsafe input = nil
        inputCount = 0
    }

    /// Copies bytes to OpenSSL; returns 0 when there are none.
    fileprivate mutating func read(into buffer: UnsafeMutablePointer<CChar>, _ count: Int32) -> Int32 {
        guard inputCount > 0, count > 0, let source = unsafe input else { return 0 }
        let copied = min(Int(count), inputCount)
        unsafe UnsafeMutableRawPointer(buffer).copyMemory(from: source, byteCount: copied)
        unsafe input = source + copied
        inputCount -= copied
        return Int32(clamping: copied)
    }

    /// Creates a BIO on `memory`, which must outlive it.
    @unsafe static func makeBIO(on memory: UnsafeMutablePointer<MemoryBIO>) -> OpaquePointer? {
        guard let method = unsafe method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, memory)
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    // nonisolated(unsafe): immutable after its initialization.
    private nonisolated(unsafe) static let method: OpaquePointer? = {
        let kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = unsafe BIO_meth_new(kind, "martlet memory") else { return nil }
        unsafe BIO_meth_set_read(method, read)
        unsafe BIO_meth_set_write(method, write)
        unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return unsafe method
    }()

    private static let read: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
        bio, buffer, count in
        guard let memory = unsafe BIO_get_data(bio)?.assumingMemoryBound(to: MemoryBIO.self),
            let buffer = unsafe buffer
        else { return -1 }
        let copied = unsafe memory.pointee.read(into: buffer, count)
        if copied > 0 { return copied }
        unsafe martlet_bio_want_read(bio)
        return -1
    }

    private static let write: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
        bio, bytes, count in
        guard let memory = unsafe BIO_get_data(bio)?.assumingMemoryBound(to: MemoryBIO.self), let bytes = unsafe bytes,
            count > 0
        else { return -1 }
        let source = unsafe UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self)
        unsafe memory.pointee.output.append(source, count: Int(count))
        return count
    }
}

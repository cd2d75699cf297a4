private import COpenSSL
internal import MartletCore

/// What OpenSSL sees of the wire: the bytes lent to it for the length of a call, and a buffer for what it has to say.
///
/// One small BIO does both. OpenSSL takes what it can use at once and keeps at most one unfinished record itself, so
/// nothing that was lent is ever copied to be read later.
@safe struct TLSWire: ~Copyable {
    /// What is left of the bytes lent for the call under way.
    private var input: UnsafePointer<UInt8>?
    private(set) var inputCount = 0
    /// Records that wait to be written; empty without memory.
    var output = ByteBuffer()

    init() { unsafe input = nil }

    /// Lends bytes to OpenSSL; ended by `takeBack`.
    mutating func lend(_ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe input = bytes.baseAddress
        inputCount = bytes.count
    }

    /// Ends the loan; what was not read is nobody's any more.
    mutating func takeBack() {
        unsafe input = nil
        inputCount = 0
    }

    /// Moves bytes to OpenSSL; 0 when there are none.
    fileprivate mutating func read(into room: UnsafeMutablePointer<CChar>, _ count: Int32) -> Int32 {
        guard inputCount > 0, count > 0, let source = unsafe input else { return 0 }
        let taken = min(Int(count), inputCount)
        unsafe UnsafeMutableRawPointer(room).copyMemory(from: source, byteCount: taken)
        unsafe input = source + taken
        inputCount -= taken
        return Int32(clamping: taken)
    }

    /// A BIO on a wire; whoever frees the BIO frees the wire after it.
    @unsafe static func makeBIO(on wire: UnsafeMutablePointer<TLSWire>) -> OpaquePointer? {
        guard let method = unsafe method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, wire)
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    // nonisolated(unsafe): set up once, then only read.
    private nonisolated(unsafe) static let method: OpaquePointer? = {
        let kind = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = unsafe BIO_meth_new(kind, "martlet wire") else { return nil }
        unsafe BIO_meth_set_read(method, read)
        unsafe BIO_meth_set_write(method, write)
        unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return unsafe method
    }()

    private static let read: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
        bio, room, count in
        guard let wire = unsafe BIO_get_data(bio)?.assumingMemoryBound(to: TLSWire.self), let room = unsafe room else {
            return -1
        }
        let taken = unsafe wire.pointee.read(into: room, count)
        if taken > 0 { return taken }
        unsafe martlet_bio_want_read(bio)
        return -1
    }

    private static let write: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
        bio, bytes, count in
        guard let wire = unsafe BIO_get_data(bio)?.assumingMemoryBound(to: TLSWire.self), let bytes = unsafe bytes,
            count > 0
        else { return -1 }
        let source = unsafe UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self)
        unsafe wire.pointee.output.append(source, count: Int(count))
        return count
    }
}

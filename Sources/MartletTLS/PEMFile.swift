private import COpenSSL
private import Glibc
internal import MartletCore

/// The bytes of a PEM file, limited in size and wiped after use.
@safe struct PEMFile: ~Copyable {
    /// Larger than any real chain or CA bundle.
    private static let maximumBytes = 4 * 1024 * 1024

    private var bytes: [UInt8]

    /// Reads a regular file.
    /// - Throws: the code `unreadable` with the system's reason.
    init(_ path: String, unreadable: ErrorCode) throws(TLSError) {
        bytes = try PEMFile.read(path, unreadable)
    }

    private static func read(_ path: String, _ unreadable: ErrorCode) throws(TLSError) -> [UInt8] {
        func failure(_ reason: String) -> TLSError { TLSError(code: unreadable, message: "\(path): \(reason)") }
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw failure(unsafe String(cString: strerror(errno))) }
        defer { close(file) }
        var facts = stat()
        guard unsafe fstat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
            throw failure("not a regular file")
        }
        guard facts.st_size <= PEMFile.maximumBytes else { throw failure("larger than 4 MiB") }
        // One byte more than the file, to detect its end without growing: reallocation would leave copies of a key.
        var bytes = [UInt8](repeating: 0, count: Int(facts.st_size) + 1)
        var filled = 0
        while filled < bytes.count {
            let count = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe Glibc.read(file, buffer.baseAddress.map { unsafe $0 + filled }, buffer.count - filled)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure(unsafe String(cString: strerror(errno))) }
            if count == 0 { break }
            filled += count
        }
        guard filled < bytes.count else { throw failure("changed while being read") }
        bytes.removeLast(bytes.count - filled)
        return bytes
    }

    deinit {
        unsafe bytes.withUnsafeBytes { raw in
            unsafe OPENSSL_cleanse(UnsafeMutableRawPointer(mutating: raw.baseAddress), raw.count)
        }
    }

    /// Whether the file contains a text.
    func contains(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { text in
            bytes.indices.contains { unsafe bytes[$0...].starts(with: text) }
        }
    }

    /// Calls `body` with a BIO that reads the file from its start.
    func read<Result>(_ body: (OpaquePointer) throws(TLSError) -> Result) throws(TLSError) -> Result {
        try unsafe bytes.withUnsafeBufferPointer { raw throws(TLSError) in
            // An empty buffer has no address, which OpenSSL does not accept.
            let bio =
                if let base = raw.baseAddress { unsafe BIO_new_mem_buf(base, Int32(clamping: raw.count)) } else {
                    unsafe BIO_new(BIO_s_mem())
                }
            guard let bio = unsafe bio else { throw TLSError(.tlsSetUpFailed, "no memory") }
            defer { unsafe BIO_free(bio) }
            return try unsafe body(bio)
        }
    }

    /// Visits every certificate of the file in order; the visitor takes ownership.
    /// - Returns: the number of certificates.
    /// - Throws: the code `invalid` for a certificate that cannot be parsed.
    func certificates(
        of path: String, invalid: ErrorCode, _ visit: (OpaquePointer) throws(TLSError) -> Void
    ) throws(TLSError) -> Int {
        try unsafe read { bio throws(TLSError) in
            var count = 0
            ERR_clear_error()
            while let certificate = unsafe PEM_read_bio_X509(bio, nil, nil, nil) {
                count += 1
                try unsafe visit(certificate)
            }
            // OpenSSL reports the end of the file as "no start line".
            guard martlet_tls_error_reason(ERR_peek_last_error()) == PEM_R_NO_START_LINE else {
                throw TLSError(invalid, "\(path): certificate \(count + 1)")
            }
            ERR_clear_error()
            return count
        }
    }
}

internal import COpenSSL

/// The names of a client's certificate, as they are in it: not checked.
@safe struct ClientCertificateNames: Sendable {
    /// The subject as RFC 4514 text; empty without a subject, `nil` if a part of it is not text.
    private(set) var subject: [UInt8]?
    /// Whether a part of the subject has a control character; the text has it escaped.
    private(set) var subjectHasControl = false
    /// In UTF-8; `nil` for one that is not text.
    private(set) var commonNames: [[UInt8]?] = []
    private(set) var hosts: [[UInt8]] = []
    private(set) var uris: [[UInt8]] = []
    private(set) var addresses: [[UInt8]] = []

    /// - Throws: `certificate.malformed` for names that cannot be parsed, or are given twice.
    init(_ certificate: borrowing ParsedCertificate) throws(ClientCertificateError) {
        readSubject(certificate)
        try readAlternatives(certificate)
    }

    private mutating func readSubject(_ certificate: borrowing ParsedCertificate) {
        let name = unsafe X509_get_subject_name(certificate.pointer)
        var isText = true
        let count = unsafe X509_NAME_entry_count(name)
        for index in 0..<max(count, 0) {
            let entry = unsafe X509_NAME_get_entry(name, index)
            let value = unsafe Self.text(X509_NAME_ENTRY_get_data(entry))
            if unsafe OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) == NID_commonName { commonNames.append(value) }
            isText = isText && value != nil
            if let value, CertificateText.hasControl(value) { subjectHasControl = true }
        }
        subject = isText ? unsafe Self.print(name) : nil
    }

    /// RFC 4514, with every character beyond ASCII escaped, as `openssl x509 -nameopt RFC2253` prints it.
    @unsafe private static func print(_ name: OpaquePointer?) -> [UInt8]? {
        let bio = unsafe BIO_new(BIO_s_mem())
        defer { unsafe BIO_free(bio) }
        guard unsafe martlet_print_name(bio, name) >= 0 else {
            ERR_clear_error()
            return nil
        }
        var start: UnsafeMutablePointer<CChar>?
        let count = unsafe martlet_bio_bytes(bio, &start)
        return unsafe UnsafeRawBufferPointer(start: start, count: Int(count)).map { $0 }
    }

    /// A string of any type in UTF-8; `nil` if it is not valid in its encoding.
    @unsafe private static func text(_ string: UnsafePointer<ASN1_STRING>?) -> [UInt8]? {
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe ASN1_STRING_to_UTF8(&output, string)
        guard count >= 0, let start = unsafe output else {
            ERR_clear_error()
            return nil
        }
        defer { unsafe martlet_openssl_free(start) }
        return unsafe Array(UnsafeBufferPointer(start: start, count: Int(count)))
    }

    private mutating func readAlternatives(
        _ certificate: borrowing ParsedCertificate
    ) throws(ClientCertificateError) {
        var status: Int32 = 0
        guard let found = unsafe X509_get_ext_d2i(certificate.pointer, NID_subject_alt_name, &status, nil) else {
            ERR_clear_error()
            // -1: the extension is absent.
            guard status == -1 else {
                throw ClientCertificateError(.certificateMalformed, "the alternative names cannot be parsed")
            }
            return
        }
        let names = OpaquePointer(found)
        defer { unsafe GENERAL_NAMES_free(names) }
        let count = unsafe martlet_names_count(names)
        for index in 0..<max(count, 0) {
            var kind: Int32 = 0
            let value = unsafe GENERAL_NAME_get0_value(martlet_names_value(names, index), &kind)
            guard [GEN_DNS, GEN_URI, GEN_EMAIL].contains(kind), let value = unsafe value else { continue }
            let string = unsafe UnsafePointer<ASN1_STRING>(value.assumingMemoryBound(to: ASN1_STRING.self))
            let bytes = unsafe Array(
                UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
            switch kind {
            case GEN_DNS: hosts.append(bytes)
            case GEN_URI: uris.append(bytes)
            default: addresses.append(bytes)
            }
        }
    }
}

/// Checks of text in certificates.
enum CertificateText {
    /// Whether UTF-8 text has a control character: C0, DEL or C1.
    static func hasControl(_ text: [UInt8]) -> Bool {
        zip(text, text.dropFirst() + [0xFF]).contains { byte, next in
            byte < 0x20 || byte == 0x7F || (byte == 0xC2 && (0x80..<0xA0).contains(next))
        }
    }
}

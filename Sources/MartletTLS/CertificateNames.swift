internal import COpenSSL
private import Glibc
internal import MartletCore
internal import MartletCrypto

/// The subject alternative names of a certificate (RFC 9525: the common name is not used).
struct CertificateNames {
    private(set) var hosts: [String] = []
    private(set) var addresses: [String] = []

    @unsafe init(of certificate: OpaquePointer) {
        guard let found = unsafe X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else {
            ERR_clear_error()
            return
        }
        let names = OpaquePointer(found)
        defer { unsafe GENERAL_NAMES_free(names) }
        let count = unsafe martlet_names_count(names)
        for index in 0..<count {
            var kind: Int32 = 0
            let value = unsafe GENERAL_NAME_get0_value(martlet_names_value(names, index), &kind)
            guard kind == GEN_DNS || kind == GEN_IPADD, let value = unsafe value else { continue }
            let text = unsafe UnsafePointer<ASN1_STRING>(value.assumingMemoryBound(to: ASN1_STRING.self))
            let bytes = unsafe UnsafeBufferPointer(
                start: ASN1_STRING_get0_data(text), count: Int(ASN1_STRING_length(text)))
            if kind == GEN_DNS {
                if let host = unsafe CertificateNames.host(bytes) { hosts.append(host) }
            } else if let address = unsafe CertificateNames.address(bytes) {
                addresses.append(address)
            }
        }
    }

    /// A host name in lowercase; `nil` for a name that no client can request.
    static func host(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        let isPlain = unsafe bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        guard isPlain, bytes.count > 0, bytes.count <= 255 else { return nil }
        let lower = unsafe bytes.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 }
        return String(decoding: lower, as: UTF8.self)
    }

    private static func address(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        return unsafe text.withUnsafeMutableBufferPointer { text in
            unsafe inet_ntop(family, bytes.baseAddress, text.baseAddress, socklen_t(text.count))
                .map { unsafe String(cString: $0) }
        }
    }
}

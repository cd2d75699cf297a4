package import COpenSSL
package import MartletCore

/// Times in certificates.
package enum CertificateTime {
    /// A time in a certificate; the minimum if it cannot be parsed.
    @unsafe package static func unixTime(_ time: UnsafePointer<ASN1_TIME>?) -> UnixTime {
        var parts = unsafe tm()
        guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return UnixTime(seconds: .min) }
        return UnixTime(seconds: Int64(unsafe timegm(&parts)))
    }
}

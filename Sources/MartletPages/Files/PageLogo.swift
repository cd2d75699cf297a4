package import MartletCore

/// An image that pages show above their heading.
package struct PageLogo: Sendable, Equatable {
    /// A kind of image that browsers show; the raw value is its media type.
    package enum Kind: String, Sendable, CaseIterable {
        case svg = "image/svg+xml"
        case png = "image/png"
        case jpeg = "image/jpeg"
        case webP = "image/webp"
    }

    /// It is shown 56 pixels wide.
    package static let maximumBytes = 256 * 1024

    package let bytes: [UInt8]
    package let kind: Kind
    /// Other bytes have another one: part of the URL, so that responses can be cached for long.
    package let version: String

    /// - Parameter version: in the characters of Base64URL.
    /// - Returns: `nil` if the bytes are no image of any of the kinds.
    package init?(_ bytes: [UInt8], version: String) {
        guard let kind = Kind(content: bytes) else { return nil }
        self.bytes = bytes
        self.kind = kind
        self.version = version
    }

    /// What browsers show in the tab of a page without a logo of the operator's.
    package static let tab = PageLogo(
        Array(
            """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1d4ed8"/>\
            <path d="M11 15v-3a5 5 0 0 1 10 0v3M9 15h14v9H9z" fill="none" stroke="#fff" stroke-width="2.5"/></svg>
            """.utf8), version: "tab-1")

    /// The fields of the response with it.
    ///
    /// Pages load it with `img`, where nothing in it runs. Opened by itself, an SVG would be a document of this origin:
    /// the policy takes its scripts and its origin away.
    package var fields: [(name: String, value: String)] {
        [
            ("Content-Type", kind.rawValue), ("Cache-Control", "public, max-age=31536000, immutable"),
            ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox"),
            ("X-Content-Type-Options", "nosniff"), ("Cross-Origin-Resource-Policy", "same-origin"),
        ]
    }
}

extension PageLogo.Kind {
    /// Decides by the first bytes, whatever the file is called.
    init?(content bytes: [UInt8]) {
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if bytes.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) {
            self = .webP
        } else if SVGDetection.isSVG(bytes) {
            self = .svg
        } else {
            return nil
        }
    }
}

/// The error codes of this module; `Pages.md` lists them for operators.
extension ErrorCode {
    /// The logo does not exist or cannot be read.
    package static let logoUnreadable: ErrorCode = "pages.logo_unreadable"
    /// The logo is larger than the limit.
    package static let logoTooLarge: ErrorCode = "pages.logo_too_large"
    /// The logo is no image that pages can show.
    package static let logoUnsupported: ErrorCode = "pages.logo_unsupported"
}

internal import CDashboard
internal import MartletResponder

/// A file of the dashboard, by what follows the first `/` of its path. All of them are public: they show nothing but what their script may request.
enum DashboardFile: String, Sendable, CaseIterable {
    case page = ""
    case style = "dashboard.css"
    case script = "dashboard.js"

    /// Nothing but these files runs, nothing is sent elsewhere, and no text becomes a script.
    static let contentPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

    var response: LocalResponse {
        LocalResponse(
            status: 200,
            fields: [
                ("Content-Type", mediaType), ("Cache-Control", "no-store"),
                ("Content-Security-Policy", Self.contentPolicy), ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
            ], body: bytes)
    }

    private var mediaType: String {
        switch self {
        case .page: "text/html; charset=utf-8"
        case .style: "text/css; charset=utf-8"
        case .script: "text/javascript; charset=utf-8"
        }
    }

    private var bytes: [UInt8] {
        switch self {
        case .page: unsafe Self.bytes(of: martlet_dashboard_page())
        case .style: unsafe Self.bytes(of: martlet_dashboard_style())
        case .script: unsafe Self.bytes(of: martlet_dashboard_script())
        }
    }

    /// The bytes are constants of this program.
    private static func bytes(of file: martlet_file) -> [UInt8] {
        unsafe Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
    }
}

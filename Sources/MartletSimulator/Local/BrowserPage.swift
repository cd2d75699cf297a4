private import MartletCore
internal import MartletResponder

/// The pages that the simulators show in a browser.
enum BrowserPage {
    private static let style = """
        body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem}\
        label{display:block;margin:.6rem 0}input:not([type]){width:100%;box-sizing:border-box;padding:.4rem}\
        button{font:inherit;padding:.4rem 1rem;margin-right:.5rem}
        """

    /// A page; title and body are HTML.
    static func page(_ status: Int, _ title: String, _ body: String) -> LocalResponse {
        .text(
            status, "text/html; charset=utf-8",
            """
            <!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>\(title)</title>\
            <meta name="viewport" content="width=device-width"><style>\(style)</style></head>\
            <body><h1>\(title)</h1>\(body)</body></html>
            """)
    }

    static func redirection(to url: String) -> LocalResponse {
        LocalResponse(status: 303, fields: [("Location", url), ("Cache-Control", "no-store")], body: [])
    }

    static func hiddenField(_ name: String, _ value: String) -> String {
        "<input type=\"hidden\" name=\"\(escaped(name))\" value=\"\(escaped(value))\">"
    }

    static func field(_ label: String, _ name: String, _ value: String) -> String {
        "<label>\(label)<input name=\"\(name)\" value=\"\(escaped(value))\"></label>"
    }

    static func checkbox(_ label: String, _ name: String) -> String {
        "<label><input type=\"checkbox\" name=\"\(name)\" value=\"on\"> \(label)</label>"
    }

    static func button(_ label: String, _ name: String, _ value: String) -> String {
        "<button name=\"\(name)\" value=\"\(value)\">\(label)</button>"
    }

    static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
    }

    /// A URL with parameters behind a separator, percent-encoded but for unreserved characters (RFC 3986 §2.3).
    static func url(_ base: String, _ separator: String, _ parameters: [(name: String, value: String)]) -> String {
        base + separator + parameters.map { "\($0.name)=\(encoded($0.value))" }.joined(separator: "&")
    }

    private static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: bytes.append(byte)
            default: bytes += Array("%\(Hexadecimal.text([byte]).uppercased())".utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

private import MartletCore

/// The parameters of one of WeChat's pages, by WeChat's rules.
struct WeChatPageRequest {
    /// A page on which users consent.
    enum Page: String, CaseIterable {
        /// Outside WeChat: a QR code for an application that is a website.
        case website = "/connect/qrconnect"
        /// Inside WeChat: the consent to an official account.
        case officialAccount = "/connect/oauth2/authorize"

        var variant: WeChatSimulator.App.Variant { self == .website ? .website : .officialAccount }
        var scopes: [String] { self == .website ? ["snsapi_login"] : ["snsapi_base", "snsapi_userinfo"] }
    }

    /// Why WeChat shows an error instead; the redirect URI does not get it.
    struct PageError: Error, Equatable {
        let text: String
    }

    /// In this order; the link to an official account is matched by a pattern.
    static let names = ["appid", "redirect_uri", "response_type", "scope", "state"]
    static let optionalNames: [Page: [String]] = [
        .website: ["lang", "style", "href", "self_redirect", "login_type"],
        .officialAccount: ["forcePopup", "forceSnapShot", "connect_redirect"],
    ]
    /// In bytes.
    private static let maximumState = 128

    let page: Page
    let app: WeChatSimulator.App
    let redirectURI: String
    let scope: String
    let state: String?
    /// The parameters as they came, for the form of the page.
    let parameters: [(name: String, value: String)]

    /// Checks the parameters.
    /// - Parameters:
    ///   - parameters: in the order in which they came.
    ///   - simulator: the registered applications.
    init(
        _ page: Page, _ parameters: [(name: String, value: String)], simulator: WeChatSimulator
    ) throws(PageError) {
        self.page = page
        self.parameters = parameters
        let found = try Self.checkedNames(of: parameters, page)
        func value(_ name: String) -> String? { found.first { $0.name == name }.map(\.value) }
        guard let app = value("appid").flatMap(simulator.app), app.variant == page.variant else {
            throw PageError(text: "AppID 参数错误 (appid)")
        }
        self.app = app
        guard let uri = value("redirect_uri"), RedirectURI.isValid(uri), Self.isRegistered(uri, of: app) else {
            throw PageError(text: "redirect_uri 参数错误 (10003)")
        }
        redirectURI = uri
        guard value("response_type") == "code" else { throw PageError(text: "response_type 参数错误 (response_type)") }
        guard let scope = value("scope"), page.scopes.contains(where: scope.hasSameBytes) else {
            throw PageError(text: "Scope 参数错误或没有 Scope 权限 (10005)")
        }
        self.scope = scope
        state = value("state")
        guard Self.isState(state ?? "", on: page) else { throw PageError(text: "state 参数错误 (state)") }
    }

    private static func checkedNames(
        of parameters: [(name: String, value: String)], _ page: Page
    ) throws(PageError) -> [(name: String, value: String)] {
        let known = parameters.filter { names.contains($0.name) }
        let others = parameters.map(\.name).filter { !names.contains($0) }
        guard others.allSatisfy((optionalNames[page] ?? []).contains),
            Set(parameters.map(\.name)).count == parameters.count
        else { throw PageError(text: "参数错误: unknown or repeated parameter") }
        // Without the state, which is optional, the order is the same.
        guard known.map(\.name) == names.filter({ name in known.contains { $0.name == name } }) else {
            throw PageError(text: "参数错误: the order is \(names.joined(separator: ", "))")
        }
        return known
    }

    /// The host alone counts, exactly; every valid one if none is registered.
    private static func isRegistered(_ uri: String, of app: WeChatSimulator.App) -> Bool {
        guard let domain = app.redirectDomain else { return true }
        return RedirectURI.host(of: uri).map { $0.lowercased().hasSameBytes(as: domain.lowercased()) } == true
    }

    /// Only the page of official accounts documents a form.
    private static func isState(_ state: String, on page: Page) -> Bool {
        page == .website
            || (state.utf8.count <= maximumState
                && state.utf8.allSatisfy { byte in
                    (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                })
    }
}

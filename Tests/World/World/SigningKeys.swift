import MartletCore
import MartletCrypto

/// Keys of issuers and developers: the same in every process, so that a seed gives the same bytes.
/// They were generated for this, and protect nothing.
struct SigningKeys {
    /// Those of an issuer, in the order in which it changes to them; the last one is never published.
    let issuer: [PrivateKey]
    /// That of the developer account.
    let developer: PrivateKey
    static let developerPEM = pem(developerText)

    init() {
        issuer = Self.issuerTexts.compactMap { try? PrivateKey(pem: Secret(Array(Self.pem($0).utf8))) }
        guard let key = try? PrivateKey(pem: Secret(Array(Self.developerPEM.utf8))), issuer.count == 4 else {
            preconditionFailure("the keys cannot be read")
        }
        developer = key
    }

    private static func pem(_ text: String) -> String {
        "-----BEGIN PRIVATE " + "KEY-----\n\(text)\n-----END PRIVATE KEY-----\n"
    }

    private static let issuerTexts = [
        """
        MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQC8hRiKhewjX0Wh
        jir3EngpiwhEoAcG9ul0bQzqMI7NpPLv7BrU1XLudJtD4vs4tElzwOUpkPC2suJz
        qaC7+mrSBySixHfp/838OcIkQWLnRQIgVze2Rg6GzGdWyZ3FjCsa2aD068BQxa7D
        7a0wVGb40dzOKpYnx0ZCO+Qu9/thA9SBTRI8VWxhWVFOXJYpefWtFvlj/jzXiB1L
        PROZk7/CvCrjMF6HWJjniKzoaaGCm4NT9yyIl664Y+8di6E3QZ26sAjbWB2tD+SN
        AHlz9/y1p0NWWEVMI8nLTEq2BohVh7yJPCnYbxcec0XFo8pn18G2WKNDuiMFjnpf
        IoB8/EDnAgMBAAECggEAGZHP31IE0lNkxWHcEADwTWovJ+ewrFAnIAR+gPEvHVNn
        JAWZKg79dLxaJt4NhwZlBA9Axd+D1rPypQ933qc7f9s6K92MCjAJB1HqNDKuMIIa
        pLpPsyhTZhMpXQshnB7D5fNosm+beRkm+CovmGOKR+tnEIuULDcKH4eyDnDSJrk7
        HcuIVmJoV5JBS4+QjMICTnNyMd8wSa0R1TkqNKtPYPUUVsvI4tur7Y8MfFNKcVeI
        s6EWYh4Gpm59jFdRNCKmcn+lFPjqRF5EhxCjKVIEyrfgPT3ARgQHp+fMW2sC56fl
        9XARgKuVgNDR5ZZfyxlvz0VGBZEn/jE1WGqFvTAzqQKBgQD72satnvuLyuJy6bh0
        GpQlHk7e9ixsbgV2b1qAqjdBfFMdZTqouR6oOx66trYexcMx1cwdZPa3ewqXswaw
        5/Ejzzvbmfb7u40sOOVYupPY4ngKgvxpVXU7mc6FbyUpslcy0XEGqb5gKGfF06gX
        9kYidtyaI6AgSV5HvVRp28qrhQKBgQC/n3NLiFWuMGGW8k+EOhTBmPR+YiUKXGVv
        LkfoVKngY0Egu9i/NFzSmZu9R0dRLx9lA6kdY5wa94F9HqLYiX5sd01d8BQAER4C
        vLr1lWLtV/XatHxjVCDBZqRw40B08B593yIOdESJyrExQL4OCqk9igtc79tptmws
        BNnOLZf4ewKBgELRMQKg+iWFRvyrqycKYiFS4CPg9boymjpoon8eKZizDi3vTFe0
        /UAupyFsFfcmCnovOX7W6WmWOCI0+eJ3No+EjGHfgBobEQIZeidHILBarPRE+ghM
        BtUwIg1ehmKAkQfHbxAQepRyQ83FMIRi7wp3tGEkcHgAXwXzYfDPwf4tAoGAJtCK
        jyM3j8gXDHdaqgMFz01HQQ5qSFX86e9q+2Gi42PXfmTue5SEtNgOluGITaaI6nI6
        YEycA05dOVXqUIhRRnFIB54ovva4qH9IM5Sl7EOj9kAW7hvNYr+C0acGmGlHE+IN
        yPW+KFcZW0us87UvINsEgDfJrvkXojb9U2ki3l8CgYBjFlmdIVB6hh6GwYso68BP
        3kK5k8CRiJqf81NJosgooUTfaxyM9BJFMU3sQj8OWQ8pqqMd3iaIBAbGbzu6ZtnQ
        6BBEpIpMqcroZDbPrHUcMNIIThJ2ROgBV7PfsLwSXitBCfICcpdAoy9BMeGSDruD
        Y9K7L0nI5tj1kYNxpFeSuQ==
        """,
        """
        MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC002POkdZQ7RBr
        2N1EP1EfLwYJyIu8Z7fePUON6HcoGMNwPBlCGSS0rErefvX+qniFYX5xwRewsmaY
        qGlmNARwn+chQiIcoRyS6lpmXv/Wcr/rBa/w6aMNIJ1/4qRhmvjF6SNkyHpe581o
        SSVkkDw3721ulGUwo8aDJ0fOo5WSZ/O/csjV15ezdB7JYpt73cTDoVjYTDfiFZ3i
        njlj1cRP2Q6z48/MBJQKwJDG0+GSwt0yzM0Av/ozz06qingvY2wn3UXgiIWvbU9E
        zBauKVELPTqi69L6FmGPiAjBne8UhQvuJBHq1I4Bv+mgeZYiAPDRHtZnPMIzk8Pk
        pNGoxbo1AgMBAAECggEAKpwuhnCUt1SpnDRJ7ala8RV4X4lPrkmliPvYRaIcJAlz
        0miDDjGVFfMMoHH7/zMF++49qMoWzkc3yGzVC2WiDzUK9qoaFjN7433QaBOmR08a
        fOQF8efoSXFgU9ChKjPlv+NAeSEJvv/yBgtIgbJAUnD70UUsNCI/psu0jtO67Pjm
        OUfjqEgUYBWLKoYeuIHXwrUrn+6gY54f3g1PniCEjUeQHWSK7w+HVfW2dsPCmY6F
        VTBBWhL6EDeCqJWVaH4k4pWH5rxL7WFADZZ5IvouYw6vl4byj6WCTJek+hlTMgeL
        OV705qtZ+4mo+6tb9LqwnoPc4coAtOCY+8DV7q464QKBgQD0oVg3SYJ7rwOiXQ5C
        JD77Budcwq/P/VfXSuyxUfNyx2di5ostR5JpaGAmD7dax1CBHLAy5GFjfsl5aHzA
        fJgN4odtLDIDy/nqv59o+vqkp3hSE9nlmjfGubOMfhvFTcHXayeYmXZ//Y71Si6w
        bx2NIOFfIaDjAfp3N3cBouLA4QKBgQC9OuM3JdWD2hIE1By6zbd1TFY4SiwBaVwc
        COwyvu9/jKkyaSpuCI9JEtub2F+NktKLXkgXMr0VJMQTKZ+lyTBW9fiW9eM+/FNS
        Xwwibjra//JNNKWfAYm5X0tT39f1voL3OoN1ZkQ/C03xXDedyG1qKIWVx26iPzUe
        q4QXhMAf1QKBgHpjTlM6v8FJajQNAlks8SV96rqJ3JPeV9gqcAi2y2mdQahFV1Qr
        /qAlzBS+wCj2ltxBkhWkFOVGRV4sXF2g+CHaN47zEYK8xigf/ozzI/rEnnnR3K32
        XflaZu3fGd24bUZtIb5C6PpXzPIDTyCONuaokJibpnZsQvbqFOwIphGBAoGAE4wr
        wJyl69LxHZKTzTBHDVTvay0uUo8BttutGqjisLhlGhIHEgrMUm4iRX0akdNi8Iay
        x8K0CaUcpCYemc+osLMEFQQdj3odWVr8M+pTJiBedV9E5KISChYv/+AVvQsLGGLx
        BYWk8yZFzPMLw77anqbE9e3+HcCNyjdJk+xgtGkCgYEAsg6hdIcORqLEkvhYZLXd
        bTuz/rSiRNfp7JxaFl+OTNSJ95ggyE58eo1W1IMz99iHPXENsExmFqUMQoG852pW
        2ZV73n/VRu4/h4MHwv9w82YoO5Bt06uQXqwAwk1Hm3RYuvenWOyRWoUV0GVfmgz5
        9LqSaAsGjLlR+YfsWc5wd84=
        """,
        """
        MIIEugIBADANBgkqhkiG9w0BAQEFAASCBKQwggSgAgEAAoIBAQCN0EcxUvi9bFM5
        UDP7OsFQuH7R+wQ/QITqEAnl37oN2Kr9YixXyZ24yq7/inmPeT3DMHEnxxwpdWhL
        l1CeUOCUfkmFYav8biE6GVWbuTs3U5QVp5T3tCEmEYL/fNBmix0acQqXEbsSh1Oy
        UKXwkjdlSkFtxDmsELek0fA1g1KBhpky/Wytux+hFk+xjUvtbpPm303zKyQyew1l
        HUp60r5D9F0KS5QFv4GWdeAub+EbaqIssBDSq4BslDmbhvhgqMBu5hBFvTkv8NvL
        LOrkVtImjxXqu2fOO12yTC9sGmNBIaQHIqjlkp/z6RQE+afi93rNEQd/wB8Nvuxu
        2pIbG15rAgMBAAECgf83HjyNbzI+bVvrasDJZIy+Uvb3phiAfRMr5g/yyIIH366V
        zRJvDG3A5QYfTDLzEKxwsONKEplfg8KFnso2vjiLfooUzWGLO0Ku0inz3IqndlSY
        FgpQPDKmGShRJLHbKTamkEkNblbHXNGq/K2CU1I0jCfiAeJofhbieLZkFiZ7MMEn
        vKX6oKz7lszqoJ2LTCU4e+wP9DPVnS1gyveNoD8j2T5YW2ln/6OzhFhMu1y706k+
        d5g2R8VgSJMSYD5HdSEgZrT2B4IaEYoaD2kdNWQSArLhn03zzl/RKs1dY0j4yMAm
        Zgzhpa5ArdL0nLe1o2CTHgFWQeluPgOB8to96vECgYEAxSOaOrpT4QKwN25yI3CB
        flIhdIqSn+Ig9bN9hsatr4HCNT2OXNRCwFLu7dByHXxtAIw+U4I9cEd99+KW4DhG
        9YA3Q/OvRYbvNk69vX00VvXlt+86/mrxvfhkDSfz+gDrMk/v1IZHpYUVV8LK4iT3
        OZW8TowV1yNkGgmZfCKjBnsCgYEAuCfaDWAKOTBe7xT66kxEEvYtZsv4UWaxijTq
        xqwv3TCVgqNQfo5XVLB4rV8UgNCs21WATjhPO3sjP4Wbqml5Lw7Dzz9vzLrRr1bf
        EKcmU+EoCBHU1orh3nHChT06m8hleFEvvchFrDffHa5oN2guV9MA5hhLuzXbm7j4
        HnxG/NECgYA803BZ4HXS/l5arBRBhQwfar3x1HPLKx1aUihP9mtOtK20eaq8T63M
        44nfDKq5GFQVkDAG2i+UvipK2roMsrCKPSZQLBcPT8PtMLxwg/orPrHDX+gG6f5u
        y/4q5QHtSG1JV8q6+zeOBZMBQhQRVLCHLwEsByMR/1R6iC24VIOSkwKBgBmF1G/E
        HsacUJv8IWZ1mX2zRsmXfVvyyqpn+R394Uhbom0Pq2lO2wWuy5rjsZjE0yA28mhk
        335T66ezIcb1hUkjV7oShbEvNz6A4LuTHvnDG+Q6bHAroXBN/fKvcL8EgCOzxNUd
        u6JJwA+CC4maU8nyQY6iUWSp6zzi3uiCuufxAoGANbstqZfVMXfsbw/xmzDs6Jz1
        jWUqzS7DwPgPO8pvuTRjB8W47SDJzwKhHcD444hFvSI0q7qp4RGOpHlNQt3jhr0s
        A5xSt9W81Vn+0t+5ifYt9eojGiGbK6N4Om1Cymu9BPuBFi9ab1UwJVDZ08t/mlI7
        XWz7htL+k0XVuXAooVM=
        """,
        """
        MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCvD8zsGeU4LfHe
        RGf5I8sY7QvFtepKuHM6wlo4xiV1b2cGMCPsQvf+xx8bGYqvsRG6Il9pf/fIUWU2
        3PGBkbGz6mC18Ws8lWEzmi4B+kt8UWpPWMyWWFesPR3FL7mx6pbfTRrydLWUPpzL
        m3oJliElS/J8lhpX8+dZMJyAMbC5QEJNZFKIIfu4M2cMTYGY66ra0f8SINBnI884
        DJ9JdN7vluo7QXrgsF+vvyoBGVpGhDBwAYbAl366YUUdUUMe7mw3MHZvDCRFMCWJ
        0JoAkga9vgZ8XPEQ2hXR8YoJZEMh83yMQ2bgqfQl6iAGDXfKgBcyViBGBTul81xe
        LaMq6fbVAgMBAAECggEAOYxQKS06FQXFhPOn2lbR5RfHzu7GXlnUR3SshA1fMwO0
        MmyQ4pIBRFfg+d+jn63tzeqOwve2VLutMiPfoGBssmBR+n2qavgQRA5jIXNObUe2
        Uu82EhZoe857gt71hG9BuZZ3TUzghCMxGB28OHqJ2uDkjeAqOM+NNdytFdc/6SWT
        bZKxpw+1y7dqUcg++OB4mWPB/0EdTf2u33hFbnnivAdWKjkoUcnz3FEX7FlLsoiC
        zoTrlTRXEr/lEj6eqrGFaze7Gen6MK9csRTigl80my2iCz4DT56+Zz2QN5grgSp3
        L3SFstHNnqk8U1kjsza20S8URbWGT7GK/bLfS0d+4QKBgQDYlb+0B6Yszov45uo+
        DXJZ9wN4rhCen83OwC4pfkgfXlX10g9RQ5JUkLkRbgn9qz+BjXcqS8sfOQHrkpIH
        1pjMMAACcVJzf5K2OmS25X7JRSvJjujmkfQYCnXsnGYi8Srk8NTBjmQzi2emVlrw
        Y3iR35x11n4b/B7ZfyCYYk0bXwKBgQDO65GduHVhpYc6Usvq1t01NHZEkps3BIUY
        LB2Fx2Fl2rYjo0lTyTLjyVCS2ogWyTpaYxEJukn+RLxSYxAF169EPNZzNglNl2WR
        6ELfgJSJHIZ7wK3CqFIZd0yQ6VQGORP4vKjba0eNpSuNyOsyXa9HoS0BXB0tevd2
        PLYxHYROSwKBgExzB1jnvktgmN3BvHssyelhnJMTdgBXzhClm2XAEnsoFFWR0SBR
        Jqy87OZvHg2xTdhP8/k1Cby6pafec7dak1K3urkiAQWNyV6TXAuHFGq9BMi/rgv9
        BtkZkCh1yEObNxXawG6V8V6UXYDESJNDuUJcWODrVlZQdx80lW/Uev0nAoGANz18
        anbMH31pVJC2D8O82m9fA3+AIHf8cC+W0hggUGjLJ0h4Uv3rsBQWhp4AptSh12+L
        JOWuy0reW8BGjsi96aG0Pp22bhh07TbsY26YOOJ8pJ0TxlvZTyMiNa2U2PRz+Hul
        OK6zM4Vc00VIRPHt0VmeAjbtMy8Y0V/z47jVkXECgYA2hF0ly31mo9aElWt49MDT
        netOn0wTwLxzLcEx3RMwHrX5DGW24Nl2GAJB09jds9zRb58dQXCH6GhPJJMtfe0x
        Bz1AK6EkdehYTGG3K3RXpdN+NEUXOYWnWN9Kseh1u/BHuKqJLydMAqKiNHghx4Tw
        vLE472AlzY6L9TifocF7ag==
        """,
    ]
    private static let developerText =
        """
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5TZ9rVDAmMwJOKn6
        ZOuy+WGnQBwRlAL04Eca/EaLq32hRANCAASM2G0BEmnYVkz32mX3yhVFnto+/np1
        j+/EEqpjWSVEW71tekEZR6I0jiMM1djmDgaq1IUiAh0cH1Sy2UK/BM/Z
        """
}
